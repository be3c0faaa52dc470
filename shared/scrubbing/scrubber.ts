import { createHmac } from 'node:crypto'
import { DEFAULT_SCRUBBING, type ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { setBounded } from '../memory/bounded-map.ts'
import { wordsOf } from './key-words.ts'
import { ReplacedCounts } from './replaced-counts.ts'
import { replaceInJson } from './scrub-text.ts'

/** The text that takes the place of a masked value. */
export const MASK = '[scrubbed]'
/** Hexadecimal digits of a hashed value. */
const HASH_DIGITS = 16
/** Longer keys are matched by their end. */
const KEY_CHARACTERS = 1_024
/** Keys of which it is remembered which rule they match, and the longest of them. */
const KNOWN_KEYS_MAX = 2_000
const KNOWN_KEY_CHARACTERS = 100
/** If more words than these have one ending, each key with it is looked up. */
const WORDS_COMPARED_MAX = 8
/** Deepest nesting of a JSON value that is searched. */
const DEPTH_MAX = 100

/**
 * Names by which the service itself finds and groups what it stores. Their values stay, whatever the rules say: sessions, their
 * erasure and findings rest on them.
 */
const OWN_KEYS = /^(?:session\.id|service\.(?:name|version)|exception\.[a-z_.]+)$/

const IS_WORD = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-z]/i.test(String.fromCharCode(byte)) || byte >= 0x80 ? 1 : 0,
)
const ASCII_WORD = /^[0-9a-z]{2,}$/

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
  /** The values that `replace` has replaced. */
  readonly counts = new ReplacedCounts()
  readonly #hashKey: Buffer | undefined
  /** The words of each key of the rules, separated by spaces, with its rule and the place of that among the rules. */
  readonly #endings = new Map<string, { readonly rule: ScrubbingRule; readonly place: number }>()
  /** Words of the longest of these keys. */
  #wordsMax = 0
  /** Whether a key can match of which the last word is not compared as bytes. */
  #looksUpAll = false
  /** The last words of the keys, as lower-case bytes. The first one is none. */
  readonly #lastWords: Buffer[][] = [[]]
  /** Which of `#lastWords` a key may end with, by the last five bits of its last three bytes. */
  readonly #byEnding = new Uint16Array(32_768)
  readonly #known = new Map<string, ScrubbingRule | null>()

  constructor({ revision, rules, hashKey }: ScrubberOptions) {
    this.revision = revision
    this.#hashKey = hashKey
    for (const [place, rule] of rules.entries()) {
      for (const words of rule.keys.map(wordsOf)) {
        const ending = words.join(' ')
        if (!this.#endings.has(ending)) this.#endings.set(ending, { rule, place })
        this.#wordsMax = Math.max(this.#wordsMax, words.length)
      }
    }
    for (const word of new Set([...this.#endings.keys()].map(ending => ending.split(' ').at(-1) ?? ''))) {
      if (ASCII_WORD.test(word)) this.#addLastWord(Buffer.from(word))
      else this.#looksUpAll = true
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
    if (this.#looksUpAll) return true
    let last = end - 1
    while (last > start && IS_WORD[bytes[last] as number] === 0) last--
    if (last <= start) return false
    const before = last - 2 >= start ? (bytes[last - 2] as number) & 31 : 0
    const index = this.#byEnding[(before << 10) | endingOf(bytes, last)] as number
    return index !== 0 && this.#endsWithOneOf(bytes, start, last, this.#lastWords[index] as Buffer[])
  }

  #endsWithOneOf(bytes: Uint8Array, start: number, last: number, words: readonly Buffer[]): boolean {
    if (words.length > WORDS_COMPARED_MAX) return true
    for (const word of words) if (endsWith(bytes, start, last, word)) return true
    return false
  }

  /** Returns the rule that decides on the value of a key in UTF-8, or undefined if it stays. */
  ruleOfBytes(bytes: Buffer, start: number, end: number): ScrubbingRule | undefined {
    return this.ruleOf(bytes.toString('utf8', Math.max(start, end - KEY_CHARACTERS), end))
  }

  /** Returns the rule that decides on the value of a key, or undefined if it stays. */
  ruleOf(key: string): ScrubbingRule | undefined {
    const known = this.#known.get(key)
    if (known !== undefined) return known ?? undefined
    const rule = OWN_KEYS.test(key) ? undefined : this.#findRule(wordsOf(key.slice(-KEY_CHARACTERS)))
    const decides = rule === undefined || rule.action === 'keep' ? null : rule
    if (key.length <= KNOWN_KEY_CHARACTERS) setBounded(this.#known, KNOWN_KEYS_MAX, key, decides)
    return decides ?? undefined
  }

  #findRule(words: readonly string[]): ScrubbingRule | undefined {
    let found: { readonly rule: ScrubbingRule; readonly place: number } | undefined
    for (let count = Math.min(this.#wordsMax, words.length); count > 0; count--) {
      const ending = this.#endings.get(words.slice(-count).join(' '))
      if (ending !== undefined && (found === undefined || ending.place < found.place)) found = ending
    }
    return found?.rule
  }

  /** Returns the text that takes the place of a value, or undefined if nothing does. Counts the value. */
  replace({ name, action }: ScrubbingRule, textOf: () => Uint8Array | string): string | undefined {
    this.counts.add(name)
    if (action === 'remove') return undefined
    if (action !== 'hash' || this.#hashKey === undefined) return MASK
    return `hash:${createHmac('sha256', this.#hashKey).update(textOf()).digest('hex').slice(0, HASH_DIGITS)}`
  }

  /** Returns the number of values that were replaced since the last call, by the name of the rule; undefined if there are none. */
  takeCounts(): ReadonlyMap<string, number> | undefined {
    return this.counts.take()
  }

  /** Returns the text of a JSON value with the values of matching keys replaced. */
  scrubText(json: string): string {
    return replaceInJson(json, (key, valueText) => {
      const rule = this.ruleOf(key)
      return rule && JSON.stringify(this.replace(rule, () => textOfJson(valueText())) ?? null)
    })
  }

  /** Returns a JSON value with the values of matching keys replaced, the same if there are none. Adds the rules that did so. */
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

/** Returns a text itself, and other values as JSON without spaces. */
function textOfJson(json: string): string {
  const value: unknown = JSON.parse(json)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function endingOf(bytes: Uint8Array, last: number): number {
  return (((bytes[last - 1] as number) & 31) << 5) | ((bytes[last] as number) & 31)
}

/** Returns whether the bytes up to `last` end with a word of ASCII, without regard to the case of letters. */
function endsWith(bytes: Uint8Array, start: number, last: number, word: Buffer): boolean {
  const first = last - word.length + 1
  if (first < start) return false
  for (let i = word.length - 1; i >= 0; i--) if (((bytes[first + i] as number) | 0x20) !== word[i]) return false
  return true
}
