import { DEFAULT_SCRUBBING, type ScrubbingRule, type ValueKind } from '../../schemas/records/scrubbing.ts'
import { KeyRules } from './key-rules.ts'
import { isDigit, isEncoded } from './values/byte-classes.ts'
import { CARD_DIGITS_MIN, findCardNumber, isCardNumber, lookAtRun } from './values/card-numbers.ts'
import { findEmail } from './values/emails.ts'
import { findJwt } from './values/jwts.ts'
import type { Part } from './values/part.ts'
import { findParameter, findUserInfo, mayBeNamed } from './values/url-secrets.ts'

/** A part of a text that a rule replaces. */
export interface FoundValue extends Part {
  readonly rule: ScrubbingRule
}

/** The rule of each kind of values that is looked for. */
export type ValueRules = Readonly<Partial<Record<ValueKind, ScrubbingRule>>>

/** Names of parameters whose values are secrets: the keys of the default rules, and those of signatures. */
const SECRET_NAMES = new KeyRules([
  ...DEFAULT_SCRUBBING,
  { name: 'parameters', keys: ['auth', 'pwd', 'pass', 'sig', 'signature', 'jwt'], action: 'mask' },
])

const SPACE = 0x20
const HYPHEN = 0x2d
const SLASH = 0x2f
const EQUALS = 0x3d
const AT = 0x40
const PERCENT = 0x25
const CAPITAL_J = 0x4a
/** Tags of the members of AnyValue that may be a number of a card. */
const INT_TAG = 0x18
const DOUBLE_TAG = 0x21
/** Bytes of the varints of numbers of cards that have the bit that another byte follows. */
const LONG_VARINT_BYTES = 5

/** Reasons to look at a byte. */
const Trigger = { none: 0, digit: 1, at: 2, equals: 3, percent: 4, jwt: 5, int: 6, double: 7 } as const

/**
 * Finds values of some kinds in texts by their bytes. `scan` passes over bytes of any form, such as those of a whole message, and
 * stops where a value may be. `find` decides within the bounds of a text. Both are linear.
 */
export class ValueScanner {
  /** Where `scan` has to continue after `find`. */
  next = 0
  readonly #rules: ValueRules
  readonly #triggers = new Uint8Array(256)

  constructor(rules: ValueRules) {
    this.#rules = rules
    const triggers = this.#triggers
    if (rules.card_number) {
      triggers.fill(Trigger.digit, 0x30, 0x3a)
      triggers[INT_TAG] = Trigger.int
      triggers[DOUBLE_TAG] = Trigger.double
    }
    if (rules.jwt) triggers[CAPITAL_J] = Trigger.jwt
    if (rules.email || rules.url_secret) {
      triggers[AT] = Trigger.at
      triggers[PERCENT] = Trigger.percent
    }
    if (rules.url_secret) triggers[EQUALS] = Trigger.equals
  }

  /**
   * Returns the first position at or after `from` where a value may be, else `end`. In the bytes of a message it may also be the
   * tag of an int or a double.
   */
  scan(bytes: Uint8Array, from: number, end: number): number {
    const triggers = this.#triggers
    /** No run of digits that is long enough begins before. */
    let noRunBefore = from
    for (let at = from; at < end; ) {
      at = skipFour(bytes, at, end, triggers)
      for (const stop = Math.min(at + 4, end); at < stop; at++) {
        const trigger = triggers[bytes[at] as number] as number
        if (trigger === Trigger.none) continue
        if (trigger !== Trigger.digit) {
          if (isLikely(trigger, bytes, at)) return at
          continue
        }
        if (at < noRunBefore) continue
        const thirteenth = bytes[at + CARD_DIGITS_MIN - 1]
        // Every run that begins up to there contains that byte.
        if (!isDigit(thirteenth) && thirteenth !== SPACE && thirteenth !== HYPHEN) noRunBefore = at + CARD_DIGITS_MIN
        else {
          const run = lookAtRun(bytes, at, end)
          if (run.isLikely) return at
          noRunBefore = run.end
        }
      }
    }
    return end
  }

  /** Returns the value at the position at which `scan` has stopped, if there is one in the text, and sets `next`. */
  find(bytes: Uint8Array, at: number, text: Part): FoundValue | undefined {
    const { card_number, email, jwt, url_secret } = this.#rules
    const byte = bytes[at] as number
    this.next = at + 1
    switch (this.#triggers[byte]) {
      case Trigger.digit: {
        const found = findCardNumber(bytes, at, text)
        this.next = found.end
        return found.isFound && card_number ? { start: found.start, end: found.end, rule: card_number } : undefined
      }
      case Trigger.jwt: {
        const found = at - 2 < text.start ? undefined : findJwt(bytes, at - 2, text)
        this.next = found?.end ?? at + 1
        return found?.isFound && jwt ? { start: found.start, end: found.end, rule: jwt } : undefined
      }
      case Trigger.at: {
        const password = url_secret && findUserInfo(bytes, at, text)
        if (password && url_secret) return this.#found(password, url_secret)
        return email && this.#found(findEmail(bytes, { start: at, end: at + 1 }, text), email)
      }
      case Trigger.percent:
        if (at + 3 > text.end) return undefined
        if (email && isEncoded(bytes, at, 0x34, 0x30))
          return this.#found(findEmail(bytes, { start: at, end: at + 3 }, text), email)
        return this.#parameter(bytes, { start: at, end: at + 3 }, text)
      case Trigger.equals:
        return this.#parameter(bytes, { start: at, end: at + 1 }, text)
      default:
        return undefined
    }
  }

  /** Returns the values in a text, in order, without those that overlap earlier ones. */
  findAll(bytes: Uint8Array, text: Part, from = text.start): FoundValue[] {
    return [...this.findEach(bytes, text, from)]
  }

  /** As `findAll`, one after the other: a text of megabytes may have a million. */
  *findEach(bytes: Uint8Array, text: Part, from = text.start): Generator<FoundValue> {
    let last: FoundValue | undefined
    let next = from
    for (let at = this.scan(bytes, next, text.end); at < text.end; at = this.scan(bytes, next, text.end)) {
      const found = this.find(bytes, at, text)
      next = this.next
      if (found === undefined) continue
      if (last !== undefined && found.start < last.end) {
        if (found.end > last.end) last = { ...last, end: found.end }
        continue
      }
      if (last !== undefined) yield last
      last = found
    }
    if (last !== undefined) yield last
  }

  /** Returns the rule that replaces a number, if it is one of a card. */
  ruleOfNumber(value: bigint | number): ScrubbingRule | undefined {
    return isCardNumber(String(value)) ? this.#rules.card_number : undefined
  }

  #parameter(bytes: Uint8Array, sign: Part, text: Part): FoundValue | undefined {
    const { url_secret } = this.#rules
    return url_secret && this.#found(findParameter(bytes, sign, text, SECRET_NAMES), url_secret)
  }

  #found(part: Part | undefined, rule: ScrubbingRule): FoundValue | undefined {
    if (part === undefined) return undefined
    this.next = Math.max(this.next, part.end)
    return { ...part, rule }
  }
}

/** Returns the first position, in steps of four, from which one of four bytes is worth a look. It halves the cost of a pass. */
function skipFour(bytes: Uint8Array, from: number, end: number, triggers: Uint8Array): number {
  const last = end - 4
  let at = from
  while (
    at <= last &&
    ((triggers[bytes[at] as number] as number) |
      (triggers[bytes[at + 1] as number] as number) |
      (triggers[bytes[at + 2] as number] as number) |
      (triggers[bytes[at + 3] as number] as number)) ===
      0
  )
    at += 4
  return at
}

/** Returns whether a value may be around a byte, by few bytes beside it. */
function isLikely(trigger: number, bytes: Uint8Array, at: number): boolean {
  switch (trigger) {
    case Trigger.at: {
      const before = at === 0 ? SPACE : (bytes[at - 1] as number)
      return before > SPACE && before !== SLASH && before !== AT
    }
    case Trigger.equals:
      return mayBeNamed(bytes, at, SECRET_NAMES)
    case Trigger.percent:
      return (
        isEncoded(bytes, at, 0x34, 0x30) || (isEncoded(bytes, at, 0x33, 0x44) && mayBeNamed(bytes, at, SECRET_NAMES))
      )
    case Trigger.jwt:
      return at >= 2 && bytes[at - 1] === 0x79 && bytes[at - 2] === 0x65
    case Trigger.int:
      for (let i = 1; i <= LONG_VARINT_BYTES; i++) if ((bytes[at + i] ?? 0) < 0x80) return false
      return true
    default:
      return bytes[at + 8] === 0x42 || bytes[at + 8] === 0x43
  }
}
