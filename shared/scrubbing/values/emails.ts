import { ALPHANUMERIC, HOST, LETTER, LOCAL_PART } from './byte-classes.ts'
import type { Part } from './part.ts'

/** Bytes of the longest parts of an address before and after the at sign, also if they are percent-encoded. */
const LOCAL_BYTES = 320
const DOMAIN_BYTES = 255
const DOT = 0x2e
const UNDERSCORE = 0x5f
/** Beginnings of what follows an at sign in names of files and packages: `logo@2x.png`, `react@18.2.0.min.js`. */
const OF_FILE = /^(?:\d{1,2}x\.|v?\d+\.\d+\.)/

/** Returns the e-mail address around the at sign `[at, after)` in a text. Its domain has a dot and ends with letters. */
export function findEmail(bytes: Uint8Array, { start: at, end: after }: Part, text: Part): Part | undefined {
  let limit = Math.min(text.end, after + DOMAIN_BYTES)
  if (limit < text.end) while (isContinuation(bytes[limit] as number)) limit--
  let last = after
  while (last < limit && HOST[bytes[last] as number] === 1) last++
  const end = endOfDomain(bytes, after, last)
  if (end === undefined) return undefined
  let start = at
  while (start > text.start && at - start < LOCAL_BYTES && LOCAL_PART[bytes[start - 1] as number] === 1) start--
  while (start < at && !canBegin(bytes[start] as number)) start++
  if (start === at) return undefined
  const beginning = Buffer.from(bytes.buffer, bytes.byteOffset + after, Math.min(end - after, 12)).toString('latin1')
  return OF_FILE.test(beginning) ? undefined : { start, end }
}

/** Returns whether an address may begin with a byte. One that is longer than an address may be is cut between characters. */
function canBegin(byte: number): boolean {
  return (ALPHANUMERIC[byte] === 1 && !isContinuation(byte)) || byte === UNDERSCORE
}

/** Returns whether a byte of UTF-8 is not the first one of its character. */
const isContinuation = (byte: number) => (byte & 0xc0) === 0x80

/** Returns the end of the last label that can end a domain: a letter, and at least another character. */
function endOfDomain(bytes: Uint8Array, start: number, limit: number): number | undefined {
  if (ALPHANUMERIC[bytes[start] as number] === 0) return undefined
  for (let end = limit; end > start; ) {
    while (end > start && ALPHANUMERIC[bytes[end - 1] as number] === 0) end--
    const label = startOfLabel(bytes, start, end)
    if (label <= start) return undefined
    if (end - label >= 2 && LETTER[bytes[label] as number] === 1) return end
    end = label - 1
  }
  return undefined
}

function startOfLabel(bytes: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && bytes[at - 1] !== DOT) at--
  return at
}
