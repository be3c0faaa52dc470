import type { KeyRules } from '../key-rules.ts'
import { ENDS_AUTHORITY, ENDS_VALUE, isEncoded, PARAMETER_NAME } from './byte-classes.ts'
import type { Part } from './part.ts'

const COLON = 0x3a
const SLASH = 0x2f
const EQUALS = 0x3d
const AT = 0x40
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
/** Longest user and password of a URL, and longest name of a parameter. */
const USER_INFO_BYTES = 1_024
const NAME_BYTES = 100

/**
 * Returns the password in a URL such as `https://user:password@host`, or all that is before the at sign if there is no colon. `at`
 * is the first at sign behind `://`; a password may have others.
 */
export function findUserInfo(bytes: Uint8Array, at: number, text: Part): Part | undefined {
  let start = at
  while (start > text.start && at - start < USER_INFO_BYTES && isOfUserInfo(bytes[start - 1] as number)) start--
  const hasScheme = start - 3 >= text.start && bytes[start - 1] === SLASH && bytes[start - 2] === SLASH
  if (!hasScheme || bytes[start - 3] !== COLON) return undefined
  let end = at
  const limit = Math.min(text.end, at + USER_INFO_BYTES)
  for (let i = at + 1; i < limit && ENDS_AUTHORITY[bytes[i] as number] === 0; i++) if (bytes[i] === AT) end = i
  const colon = bytes.subarray(start, end).indexOf(COLON)
  const from = colon < 0 ? start : start + colon + 1
  return from < end ? { start: from, end } : undefined
}

const isOfUserInfo = (byte: number) => byte !== AT && ENDS_AUTHORITY[byte] === 0

/** Rules whose keys are the names of parameters with secrets. */
type SecretNames = Pick<KeyRules, 'mayMatch' | 'find'>

/** Returns whether the bytes before an equals sign may be the name of a secret. */
export function mayBeNamed(bytes: Uint8Array, at: number, names: SecretNames): boolean {
  const end = endOfName(bytes, at)
  return names.mayMatch(bytes, Math.max(0, end - NAME_BYTES), end)
}

/** Returns the end of the name before an equals sign, without brackets: that of `user[password]=` is `password`. */
function endOfName(bytes: Uint8Array, at: number): number {
  let end = at
  for (;;) {
    if (bytes[end - 1] === 0x5d || bytes[end - 1] === 0x5b) end--
    else if (isEncoded(bytes, end - 3, 0x35, 0x44) || isEncoded(bytes, end - 3, 0x35, 0x42)) end -= 3
    else return end
  }
}

/**
 * Returns the value behind the equals sign `[at, after)` in a text if the name before it is that of a secret. The value ends with a
 * blank, a quote, or what separates parameters; one in quotes ends with its quote.
 */
export function findParameter(
  bytes: Uint8Array,
  { start: at, end: after }: Part,
  text: Part,
  names: SecretNames,
): Part | undefined {
  const nameEnd = Math.max(text.start, endOfName(bytes, at))
  let start = nameEnd
  while (start > text.start && nameEnd - start < NAME_BYTES && PARAMETER_NAME[bytes[start - 1] as number] === 1) start--
  // The name in `%3Ftoken` is `token`.
  if (start > text.start && bytes[start - 1] === 0x25) start += 2
  if (start >= nameEnd) return undefined
  const name = Buffer.from(bytes.buffer, bytes.byteOffset + start, nameEnd - start).toString('utf8')
  if (names.find(name) === undefined) return undefined
  const quote = bytes[after]
  const isQuoted = after < text.end && (quote === DOUBLE_QUOTE || quote === SINGLE_QUOTE)
  const from = isQuoted ? after + 1 : after
  const isEncodedValue = after - at > 1
  // A second equals sign compares, and one behind it is an arrow.
  if (!isQuoted && bytes[from] === EQUALS) return undefined
  let end = from
  while (end < text.end && !(isQuoted ? bytes[end] === quote : endsValue(bytes, end, isEncodedValue))) end++
  return from < end ? { start: from, end } : undefined
}

/** Returns whether a value ends at a byte: an encoded one also with an encoded `&`, `#` or `;`. */
function endsValue(bytes: Uint8Array, at: number, isEncodedValue: boolean): boolean {
  if (ENDS_VALUE[bytes[at] as number] === 1) return true
  if (!isEncodedValue || bytes[at] !== 0x25) return false
  return isEncoded(bytes, at, 0x32, 0x36) || isEncoded(bytes, at, 0x32, 0x33) || isEncoded(bytes, at, 0x33, 0x42)
}
