import { createHmac } from 'node:crypto'
import { DEFAULT_SCRUBBING, type ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { setBounded } from '../memory/bounded-map.ts'
import { wordsOf } from './key-words.ts'

/** The text that takes the place of a masked value. */
export const MASK = '[scrubbed]'
/** Hexadecimal digits of a hashed value. */
const HASH_DIGITS = 16
/** Keys of which it is remembered which rule they match. */
const KNOWN_KEYS_MAX = 5_000
/** Deepest nesting of a JSON value that is searched. */
const DEPTH_MAX = 64

const IS_WORD = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-z]/i.test(String.fromCharCode(byte)) || byte >= 0x80 ? 1 : 0,
)

/** Rules, and the secrets that they need. */
interface ScrubberOptions {
  /** 0 for the default rules. */
  readonly revision: number
  readonly rules: readonly ScrubbingRule[]
  /** Key of the workspace with which values are hashed. */
  readonly hashKey?: Buffer | undefined
}

/** Replaces the values of keys that match a rule. The first rule that matches decides. */
export class Scrubber {
  readonly revision: number
  readonly #hashKey: Buffer | undefined
  /** The words of each key of the rules, separated by spaces, with a space before, and its rule. */
  readonly #endings: readonly (readonly [ending: string, rule: ScrubbingRule])[]
  /** The last words of the keys, as lower-case bytes. The first one is none. */
  readonly #lastWords: Buffer[][] = [[]]
  /** Which of `#lastWords` a key may end with, by the last five bits of its last three bytes. */
  readonly #byEnding = new Uint16Array(32_768)
  readonly #known = new Map<string, ScrubbingRule | null>()

  constructor({ revision, rules, hashKey }: ScrubberOptions) {
    this.revision = revision
    this.#hashKey = hashKey
    this.#endings = rules.flatMap(rule => rule.keys.map(key => [` ${wordsOf(key).join(' ')}`, rule] as const))
    for (const word of new Set(rules.flatMap(({ keys }) => keys.map(key => wordsOf(key).at(-1) ?? '')))) {
      this.#addLastWord(Buffer.from(word))
    }
  }

  #addLastWord(word: Buffer): void {
    // Any byte may be before a word of two.
    const before = word.length > 2 ? [word[word.length - 3] as number] : Array.from({ length: 32 }, (_, i) => i)
    for (const byte of before) {
      const ending = ((byte & 31) << 10) | endingOf(word, word.length - 1)
      if (this.#byEnding[ending] === 0) this.#byEnding[ending] = this.#lastWords.push([]) - 1
      this.#lastWords[this.#byEnding[ending] as number]?.push(word)
    }
  }

  /**
   * Returns whether the key in `[start, end)` may match a rule, by its last word alone. It takes few nanoseconds for a key that
   * does not.
   */
  mayMatch(bytes: Uint8Array, start: number, end: number): boolean {
    let last = end - 1
    while (last > start && IS_WORD[bytes[last] as number] === 0) last--
    if (last <= start) return false
    const before = last - 2 >= start ? (bytes[last - 2] as number) & 31 : 0
    const index = this.#byEnding[(before << 10) | endingOf(bytes, last)] as number
    return index !== 0 && this.#endsWithOneOf(bytes, start, last, this.#lastWords[index] as Buffer[])
  }

  #endsWithOneOf(bytes: Uint8Array, start: number, last: number, words: readonly Buffer[]): boolean {
    for (const word of words) if (endsWith(bytes, start, last, word)) return true
    return false
  }

  /** Returns the rule that decides on the value of a key, or undefined if it stays. */
  ruleOf(key: string): ScrubbingRule | undefined {
    const known = this.#known.get(key)
    if (known !== undefined) return known ?? undefined
    const words = ` ${wordsOf(key).join(' ')}`
    const rule = this.#endings.find(([ending]) => words.endsWith(ending))?.[1]
    const decides = rule === undefined || rule.action === 'keep' ? null : rule
    setBounded(this.#known, KNOWN_KEYS_MAX, key, decides)
    return decides ?? undefined
  }

  /** Returns the text that takes the place of a value, or undefined if nothing does. */
  replace({ action }: ScrubbingRule, textOf: () => Uint8Array | string): string | undefined {
    if (action === 'remove') return undefined
    if (action !== 'hash' || this.#hashKey === undefined) return MASK
    return `hash:${createHmac('sha256', this.#hashKey).update(textOf()).digest('hex').slice(0, HASH_DIGITS)}`
  }

  /** Returns the text of a JSON value with the values of matching keys replaced; the same text if none matches. */
  scrubText(json: string): string {
    const value: unknown = JSON.parse(json)
    const after = this.scrubJson(value)
    return after === value ? json : JSON.stringify(after)
  }

  /** Returns a JSON value with the values of matching keys replaced, and the rules that did so; the same value if none matches. */
  scrubJson(value: unknown, used: ScrubbingRule[] = [], depth = 0): unknown {
    if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value
    const before = used.length
    if (Array.isArray(value)) {
      const items = value.map(item => this.scrubJson(item, used, depth + 1))
      return used.length === before ? value : items
    }
    const entries = Object.entries(value).map(([key, member]) => {
      const rule = this.ruleOf(key)
      if (rule === undefined) return [key, this.scrubJson(member, used, depth + 1)] as const
      used.push(rule)
      const textOf = () => (typeof member === 'string' ? member : JSON.stringify(member))
      return [key, this.replace(rule, textOf) ?? null] as const
    })
    return used.length === before ? value : Object.fromEntries(entries)
  }
}

/** Scrubs by the default rules. */
export const DEFAULT_SCRUBBER = new Scrubber({ revision: 0, rules: DEFAULT_SCRUBBING })

function endingOf(bytes: Uint8Array, last: number): number {
  return (((bytes[last - 1] as number) & 31) << 5) | ((bytes[last] as number) & 31)
}

/** Returns whether the bytes up to `last` end with a word, without regard to the case of ASCII letters. */
function endsWith(bytes: Uint8Array, start: number, last: number, word: Buffer): boolean {
  const first = last - word.length + 1
  if (first < start) return false
  for (let i = word.length - 1; i >= 0; i--) if (((bytes[first + i] as number) | 0x20) !== word[i]) return false
  return true
}
