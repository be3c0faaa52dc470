import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { freeBuffer } from '../../../shared/memory/free-buffer.ts'
import type { Inspected } from '../inspect-chunk.ts'
import { MAX_TEXT_BYTES } from './line-check.ts'
import { LineChecker } from './line-checker.ts'

/** The last field of gzip is the size of its text (RFC 1952). */
const SIZE_BYTES = 4
const MIN_ZLIB_BYTES = 64

/** Inspects chunks in one go, as recorders send them, on a thread that nothing else waits for. */
export class QuickInspector {
  readonly #checker = new LineChecker()

  /** Returns what `inspectChunk` would find. Returns undefined if only that can decide, up to a third of its time later. */
  inspect(body: Buffer, encoding: 'gzip' | 'identity'): Inspected | undefined {
    const text = encoding === 'gzip' ? inflate(body) : body
    if (text === undefined || text.length > MAX_TEXT_BYTES) return undefined
    const facts = isUtf8(text) ? this.#checker.check(text) : undefined
    const decompressedBytes = text.length
    const sha256 = facts === undefined ? '' : hash('sha256', text)
    if (text !== body) freeBuffer(text)
    if (facts === undefined || facts.events === 0) return undefined
    const { events, hasFullSnapshot, firstMs, lastMs } = facts
    return {
      ok: true,
      facts: {
        eventCount: events,
        hasFullSnapshot,
        firstEventMs: Number.isFinite(firstMs) ? firstMs : undefined,
        lastEventMs: Number.isFinite(lastMs) ? lastMs : undefined,
        decompressedBytes,
        sha256,
        sentSha256: text === body ? sha256 : hash('sha256', body),
      },
    }
  }
}

/** Inflates a body into memory of the size that it states. Returns undefined if that is too large or not its size. */
function inflate(body: Buffer): Buffer | undefined {
  const size = body.length < SIZE_BYTES ? 0 : body.readUInt32LE(body.length - SIZE_BYTES)
  if (size === 0 || size > MAX_TEXT_BYTES) return undefined
  try {
    // One byte more, because zlib takes another chunk when it has filled one.
    return gunzipSync(body, { maxOutputLength: size, chunkSize: Math.max(size + 1, MIN_ZLIB_BYTES) })
  } catch {
    // Damaged, of several members, or memory is short: the exact inspection finds out.
    return undefined
  }
}
