import { ALPHANUMERIC, isDigit } from './byte-classes.ts'
import type { Part } from './part.ts'

/** Digits of the shortest and the longest number of a card. */
export const CARD_DIGITS_MIN = 13
const CARD_DIGITS_MAX = 19
/** Digits of the first group, and of the others, of a number in groups. */
const FIRST_GROUP_MIN = 4
const GROUP_MIN = 3
/** First digits of the networks of cards: Mastercard and Mir, Diners, American Express and JCB, Visa, Maestro and others. */
const NETWORKS = /^(?:2[2-7]|3[04-9]|[4-6])/
/** Numbers with these first digits have 16. */
const SIXTEEN = /^2/

/** Returns whether a byte may be between two digits of a number. */
const isSeparator = (byte: number | undefined) => byte === 0x20 || byte === 0x2d

/** Returns the end of the digits from `start` on, single separators between them included. */
export function endOfRun(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && (isDigit(bytes[at]) || (isSeparator(bytes[at]) && at + 1 < end && isDigit(bytes[at + 1])))) at++
  return at
}

/** Returns whether a run of digits is long enough to have the number of a card. */
export function isLongRun(bytes: Uint8Array, start: number, end: number): boolean {
  let digits = 0
  for (let at = start; at < end && digits < CARD_DIGITS_MIN; at++) if (isDigit(bytes[at])) digits++
  return digits === CARD_DIGITS_MIN
}

/** Returns whether these digits are the number of a card: of a network, with a right check digit (ISO/IEC 7812). */
export function isCardNumber(digits: string): boolean {
  if (digits.length < CARD_DIGITS_MIN || digits.length > CARD_DIGITS_MAX || !NETWORKS.test(digits)) return false
  if (SIXTEEN.test(digits) && digits.length !== 16) return false
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    const doubled = i % 2 === 0 ? digit : 2 * digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/**
 * Returns the first number of a card in the run of digits `[from, runEnd)` of the text `[start, end)`. It may be a part of the run
 * that begins and ends with a group, but no part of a word or of a decimal fraction.
 */
export function findCardNumber(
  bytes: Uint8Array,
  [from, runEnd]: readonly [number, number],
  text: Part,
): Part | undefined {
  const groups = groupsOf(bytes, from, runEnd)
  for (let first = 0; first < groups.length; first++) {
    const { start } = groups[first] as Part
    if (!isFree(bytes, start - 1, start - 2, text)) continue
    let digits = ''
    let found: Part | undefined
    for (let last = first; last < groups.length && digits.length < CARD_DIGITS_MAX; last++) {
      const group = groups[last] as Part
      const isShort = group.end - group.start < (last === first ? FIRST_GROUP_MIN : GROUP_MIN)
      if (isShort || digits.length + group.end - group.start > CARD_DIGITS_MAX) break
      digits += Buffer.from(bytes.buffer, bytes.byteOffset + group.start, group.end - group.start).toString('latin1')
      if (isCardNumber(digits) && isFree(bytes, group.end, group.end + 1, text)) found = { start, end: group.end }
    }
    if (found !== undefined) return found
  }
  return undefined
}

/** Returns the digits between separators. */
function groupsOf(bytes: Uint8Array, from: number, end: number): Part[] {
  const groups: Part[] = []
  for (let start = from, at = from; at <= end; at++) {
    if (at < end && isDigit(bytes[at])) continue
    groups.push({ start, end: at })
    start = at + 1
  }
  return groups
}

/** Returns whether a number may begin or end beside the byte at `at`: neither a letter, nor a point with a digit at `beyond`. */
function isFree(bytes: Uint8Array, at: number, beyond: number, { start, end }: Part): boolean {
  if (at < start || at >= end) return true
  if (ALPHANUMERIC[bytes[at] as number] === 1) return false
  return !(bytes[at] === 0x2e && beyond >= start && beyond < end && isDigit(bytes[beyond]))
}
