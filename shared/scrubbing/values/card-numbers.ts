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

/**
 * Returns whether the digits from `start` on, single separators between them included, may have the number of a card, and where
 * they end if they do not. Their first two may be the tag and the length of a text.
 */
export function lookAtRun(
  bytes: Uint8Array,
  start: number,
  end: number,
): { readonly end: number; readonly isLikely: boolean } {
  for (let at = start; ; at++) {
    const groupEnd = endOfGroup(bytes, at, end)
    for (let first = at; first <= (at === start ? at + 2 : at); first++) {
      const digit = bytes[first] as number
      const canBegin = groupEnd - first >= FIRST_GROUP_MIN && digit >= 0x32 && digit <= 0x36
      if (canBegin && hasEnoughDigits(bytes, first, end)) return { end: groupEnd, isLikely: true }
    }
    if (!isBetweenDigits(bytes, groupEnd, end)) return { end: groupEnd, isLikely: false }
    at = groupEnd
  }
}

function hasEnoughDigits(bytes: Uint8Array, start: number, end: number): boolean {
  let digits = 0
  for (let at = start; digits < CARD_DIGITS_MIN; at++) {
    if (at < end && isDigit(bytes[at])) digits++
    else if (!isBetweenDigits(bytes, at, end)) return false
  }
  return true
}

/** Returns whether the byte at `at`, behind a digit, is a separator before another one. */
function isBetweenDigits(bytes: Uint8Array, at: number, end: number): boolean {
  return at + 1 < end && isSeparator(bytes[at]) && isDigit(bytes[at + 1])
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
 * Returns the first number of a card in the run of digits that begins at `from` in a text, single separators between them included.
 * It may be a part of the run that begins and ends with a group, but no part of a word or of a decimal fraction. If there is none,
 * `end` is that of the run.
 */
export function findCardNumber(bytes: Uint8Array, from: number, text: Part): Part & { readonly isFound: boolean } {
  for (let start = from; ; start++) {
    const first = endOfGroup(bytes, start, text.end)
    const end = isFree(bytes, start - 1, start - 2, text) ? endOfNumber(bytes, start, first, text) : undefined
    if (end !== undefined) return { start, end, isFound: true }
    if (!isBetweenDigits(bytes, first, text.end)) return { start, end: first, isFound: false }
    start = first
  }
}

/** Returns the end of the longest number of a card that begins with this group. */
function endOfNumber(bytes: Uint8Array, start: number, firstEnd: number, text: Part): number | undefined {
  let digits = ''
  let found: number | undefined
  for (let [at, end] = [start, firstEnd]; ; [at, end] = [end + 1, endOfGroup(bytes, end + 1, text.end)]) {
    const isShort = end - at < (at === start ? FIRST_GROUP_MIN : GROUP_MIN)
    if (isShort || digits.length + end - at > CARD_DIGITS_MAX) return found
    digits += Buffer.from(bytes.buffer, bytes.byteOffset + at, end - at).toString('latin1')
    if (isCardNumber(digits) && isFree(bytes, end, end + 1, text)) found = end
    if (digits.length === CARD_DIGITS_MAX || !isBetweenDigits(bytes, end, text.end)) return found
  }
}

function endOfGroup(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && isDigit(bytes[at])) at++
  return at
}

/** Returns whether a number may begin or end beside the byte at `at`: neither a letter, nor a point with a digit at `beyond`. */
function isFree(bytes: Uint8Array, at: number, beyond: number, { start, end }: Part): boolean {
  if (at < start || at >= end) return true
  if (ALPHANUMERIC[bytes[at] as number] === 1) return false
  return !(bytes[at] === 0x2e && beyond >= start && beyond < end && isDigit(bytes[beyond]))
}
