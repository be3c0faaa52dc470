import { SESSION_ID_MAX_CHARACTERS } from '../../../schemas/http/fields.ts'

/**
 * Lengths in bytes to which texts are cut where they enter keys, sort orders and aggregate states
 * (docs/api/otlp.md#text-lengths). Attributes keep the whole text.
 */
export const TEXT_LIMITS = {
  serviceName: 1_024,
  serviceVersion: 256,
  metricName: 1_024,
  scopeName: 1_024,
  scopeVersion: 1_024,
  schemaUrl: 2_048,
  httpRoute: 1_024,
} as const

/** A text that is cut to this length is too long for a session id if the whole text is: a character has at most four bytes. */
export const SESSION_ID_BYTES = 4 * (SESSION_ID_MAX_CHARACTERS + 2)

/** Decodes UTF-8 text of at most `limitBytes`, cut between characters. */
export function cutText(bytes: Buffer, start: number, end: number, limitBytes: number): string {
  return bytes.toString('utf8', start, endOfCut(bytes, start, end, limitBytes))
}

/** Returns the end of a UTF-8 text that is cut between characters to at most `limitBytes`. */
export function endOfCut(bytes: Buffer, start: number, end: number, limitBytes: number): number {
  if (end - start <= limitBytes) return end
  let cut = start + limitBytes
  while (cut > start && isContinuation(bytes[cut])) cut--
  return cut
}

/** Cuts a text to at most `limitBytes` of UTF-8, between characters. */
export function cutString(text: string, limitBytes: number): string {
  // A character of a text has at most three bytes per UTF-16 unit.
  if (text.length * 3 <= limitBytes) return text
  const cut = Buffer.allocUnsafe(limitBytes)
  const { read, written } = encoder.encodeInto(text, cut)
  // A copy, because a slice would keep the whole text in memory.
  return read === text.length ? text : cut.toString('utf8', 0, written)
}

const encoder = new TextEncoder()

/** Returns whether the UTF-8 text has more characters than a session id may have. A longer one is not promoted. */
export function isOverlongSessionId(bytes: Buffer, start: number, end: number): boolean {
  if (end - start <= SESSION_ID_MAX_CHARACTERS) return false
  let characters = 0
  for (let at = start; at < end && characters <= SESSION_ID_MAX_CHARACTERS; at++) {
    if (!isContinuation(bytes[at])) characters++
  }
  return characters > SESSION_ID_MAX_CHARACTERS
}

function isContinuation(byte: number | undefined): boolean {
  return ((byte as number) & 0xc0) === 0x80
}
