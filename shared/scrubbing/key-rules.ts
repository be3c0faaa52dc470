import type { ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { setBounded } from '../memory/bounded-map.ts'
import { wordsOf } from './key-words.ts'

/** Longer keys are matched by their end. */
const KEY_CHARACTERS = 1_024
/** Keys of which it is remembered which rule they match, and the longest of them. */
const KNOWN_KEYS_MAX = 2_000
const KNOWN_KEY_CHARACTERS = 100
/** If more words than these have one ending, each key with it is looked up. */
const WORDS_COMPARED_MAX = 8

const IS_WORD = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-z]/i.test(String.fromCharCode(byte)) || byte >= 0x80 ? 1 : 0,
)
const ASCII_WORD = /^[0-9a-z]{2,}$/

/** Rules with keys. The first rule whose keys match decides. */
export class KeyRules {
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

  constructor(rules: readonly ScrubbingRule[]) {
    for (const [place, rule] of rules.entries()) {
      for (const words of (rule.keys ?? []).map(wordsOf)) {
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

  /** Returns the rule that decides on the value of a key, given as text or as UTF-8. */
  find(key: string): ScrubbingRule | undefined {
    const known = this.#known.get(key)
    if (known !== undefined) return known ?? undefined
    const rule = this.#lookUp(wordsOf(key.slice(-KEY_CHARACTERS)))
    if (key.length <= KNOWN_KEY_CHARACTERS) setBounded(this.#known, KNOWN_KEYS_MAX, key, rule ?? null)
    return rule
  }

  #lookUp(words: readonly string[]): ScrubbingRule | undefined {
    let found: { readonly rule: ScrubbingRule; readonly place: number } | undefined
    for (let count = Math.min(this.#wordsMax, words.length); count > 0; count--) {
      const ending = this.#endings.get(words.slice(-count).join(' '))
      if (ending !== undefined && (found === undefined || ending.place < found.place)) found = ending
    }
    return found?.rule
  }
}

/** Returns a key in UTF-8 as text, of a long one its end. */
export function keyText(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', Math.max(start, end - KEY_CHARACTERS), end)
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
