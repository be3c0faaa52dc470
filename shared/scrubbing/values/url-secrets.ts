import { wordsOf } from '../key-words.ts'
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

/** Names of parameters whose values are secrets. */
export class SecretNames {
  readonly #endings: ReadonlySet<string>
  readonly #wordsMax: number
  /** Whether a last word may end with two bytes, by the last five bits of each. */
  readonly #byEnding = new Uint8Array(1_024)

  constructor(keys: readonly string[]) {
    const all = keys.map(wordsOf)
    this.#endings = new Set(all.map(words => words.join(' ')))
    this.#wordsMax = Math.max(...all.map(words => words.length))
    for (const words of all) this.#byEnding[indexOf(Buffer.from(words.at(-1) as string))] = 1
  }

  /** Returns whether the bytes before `at` may be such a name. */
  mayEnd(bytes: Uint8Array, at: number): boolean {
    const end = endOfName(bytes, at)
    return end >= 2 && this.#byEnding[indexOf(bytes, end)] === 1
  }

  /** Returns whether this is the name of a secret. */
  has(name: string): boolean {
    const words = wordsOf(name)
    for (let count = Math.min(this.#wordsMax, words.length); count > 0; count--)
      if (this.#endings.has(words.slice(-count).join(' '))) return true
    return false
  }
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

const indexOf = (bytes: Uint8Array, end = bytes.length) =>
  (((bytes[end - 2] as number) & 31) << 5) | ((bytes[end - 1] as number) & 31)

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
  if (!names.has(name)) return undefined
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
