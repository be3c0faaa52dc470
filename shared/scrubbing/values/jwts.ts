import { BASE64URL } from './byte-classes.ts'
import type { Part } from './part.ts'

const DOT = 0x2e
/** Parts of a token: three if it is signed, five if it is encrypted. */
const PARTS_MIN = 3
const PARTS_MAX = 5
/** Characters of the shortest header, `{"alg":""}`, without padding. */
const HEADER_MIN = 10

/**
 * Returns the JSON Web Token that begins at `start`, with `eyJ`, in a text. Its signature may be empty. If there is none, `end` is
 * behind what was read.
 */
export function findJwt(bytes: Uint8Array, start: number, text: Part): Part & { readonly isFound: boolean } {
  let at = endOfPart(bytes, start, text.end)
  const hasHeader = at - start >= HEADER_MIN
  let parts = 1
  for (; parts < PARTS_MAX && at < text.end && bytes[at] === DOT; parts++) at = endOfPart(bytes, at + 1, text.end)
  // A full stop may follow a token.
  if (parts > PARTS_MIN && bytes[at - 1] === DOT) at--
  return { start, end: at, isFound: hasHeader && parts >= PARTS_MIN }
}

function endOfPart(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && BASE64URL[bytes[at] as number] === 1) at++
  return at
}
