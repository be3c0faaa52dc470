import { constants, gunzipSync } from 'node:zlib'
import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'

/** Bytes of a text that are looked at. */
const TEXT_BYTES = 1_024
/**
 * Bytes of a gzip that are inflated: the first few, which take 10 µs and suffice for the chunks of recorders, and else all.
 * A hostile kilobyte inflates to a MiB in 0.6 ms.
 */
const STEPS_BYTES = [128, 1_024]

/**
 * Returns why no event can begin the text of a chunk. Returns undefined if one can, or if the first KiB does not show it: a
 * worker reads the rest (docs/api/sessions.md#replay).
 */
export function faultOfStart(body: Buffer, encoding: ContentEncoding): string | undefined {
  if (encoding !== 'gzip') return faultOfByte(firstByte(body))
  for (const bytes of STEPS_BYTES) {
    const text = inflate(body.subarray(0, bytes))
    if (text === undefined) return 'the gzip is damaged'
    const first = firstByte(text)
    if (first !== undefined) return faultOfByte(first)
  }
  return undefined
}

/** Returns the text of the beginning of a gzip, or undefined if it is not a gzip. */
function inflate(start: Buffer): Buffer | undefined {
  try {
    return gunzipSync(start, { finishFlush: constants.Z_SYNC_FLUSH })
  } catch {
    return undefined
  }
}

/** Returns the first byte that is not a blank, or undefined if the beginning is blank. */
function firstByte(text: Buffer): number | undefined {
  return text.subarray(0, TEXT_BYTES).find(byte => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)
}

function faultOfByte(first: number | undefined): string | undefined {
  if (first === undefined || first === OPEN_BRACE || first === QUOTE) return undefined
  return 'a chunk is JSON lines: its first character must be the { of an event, or the " of a packed event'
}

const OPEN_BRACE = 0x7b
const QUOTE = 0x22
