import { createHmac } from 'node:crypto'
import { DEFAULT_SCRUBBING, type PatternField, type ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { KeyRules, keyText } from './key-rules.ts'
import { inOrder, PatternRules } from './pattern-rules.ts'
import { ReplacedCounts } from './replaced-counts.ts'
import { replaceInJson } from './scrub-text.ts'
import { type FoundValue, type ValueRules, ValueScanner } from './value-scanner.ts'
import type { Part } from './values/part.ts'

/** The text that takes the place of a masked value. */
export const MASK = '[scrubbed]'
/** Hexadecimal digits of a hashed value. */
const HASH_DIGITS = 16
/** Deepest nesting of a JSON value that is searched. */
const DEPTH_MAX = 100

/**
 * Names by which the service itself finds and groups what it stores. No rule with keys matches them: sessions, their erasure and
 * findings rest on them.
 */
const OWN_KEYS = /^(?:session\.id|service\.(?:name|version)|exception\.[a-z_.]+)$/
/** Those of them in whose values nothing is looked for. */
const ID_KEYS = /^(?:session\.id|service\.(?:name|version))$/
const EXCEPTION_KEYS = /^exception\.(?:message|stacktrace)$/

/** Rules, and the secrets that they need. */
export interface ScrubberOptions {
  /** 0 for the default rules. */
  readonly revision: number
  readonly rules: readonly ScrubbingRule[]
  /** Key of the workspace with which values are hashed. */
  readonly hashKey?: Uint8Array | undefined
}

/** What a key says about its value. */
type Decision =
  /** A rule with keys decides on it, or it is an id. Nothing is looked for in it. */
  | 'decided'
  /** Values of some kinds are looked for in it, and the patterns of these rules. */
  | readonly ScrubbingRule[]

/**
 * Replaces the values of keys that match a rule, and parts of texts that do. The first rule with keys that matches decides on a
 * value, and no other rule looks into it.
 */
export class Scrubber {
  readonly revision: number
  /** Rules by which another thread replaces the same values, and nothing else. Undefined if no rule looks for any. */
  readonly ofValues: ScrubberOptions | undefined
  /** The values that `replace` has replaced. */
  readonly counts = new ReplacedCounts()
  readonly #hashKey: Uint8Array | undefined
  readonly #keys: KeyRules
  readonly #scanner: ValueScanner | undefined
  readonly #patterns: PatternRules | undefined
  readonly #patternKeys: KeyRules | undefined

  constructor({ revision, rules, hashKey }: ScrubberOptions) {
    this.revision = revision
    this.#hashKey = hashKey
    this.#keys = new KeyRules(rules.filter(({ pattern }) => pattern === undefined))
    const kinds = rules.toReversed().flatMap(rule => (rule.values ?? []).map(kind => [kind, rule] as const))
    if (kinds.length > 0) {
      this.#scanner = new ValueScanner(Object.fromEntries(kinds) as ValueRules)
      this.ofValues = { revision, rules: rules.filter(({ values }) => values !== undefined), hashKey }
    }
    const patterns = rules.filter(({ pattern }) => pattern !== undefined)
    if (patterns.length === 0) return
    this.#patterns = new PatternRules(patterns)
    this.#patternKeys = new KeyRules(patterns)
  }

  /** Finds values of some kinds. Undefined if no rule looks for any. */
  get scanner(): ValueScanner | undefined {
    return this.#scanner
  }

  /** Whether rules look into texts. */
  get readsTexts(): boolean {
    return this.#scanner !== undefined || this.#patterns !== undefined
  }

  /** Whether patterns look into some texts. */
  get hasPatterns(): boolean {
    return this.#patterns !== undefined
  }

  /** Begins a request, whose texts patterns search up to a bound. */
  beginRequest(): void {
    this.#patterns?.begin()
  }

  /** Returns whether the key in `[start, end)` may match a rule with keys. It takes few nanoseconds for a key that does not. */
  mayMatch(bytes: Uint8Array, start: number, end: number): boolean {
    return this.#keys.mayMatch(bytes, start, end)
  }

  /** Returns the rule that decides on the value of a key in UTF-8, or undefined if it stays. */
  ruleOfBytes(bytes: Buffer, start: number, end: number): ScrubbingRule | undefined {
    return this.ruleOf(keyText(bytes, start, end))
  }

  /** Returns the rule that decides on the value of a key, or undefined if it stays. */
  ruleOf(key: string): ScrubbingRule | undefined {
    const rule = OWN_KEYS.test(key) ? undefined : this.#keys.find(key)
    return rule?.action === 'keep' ? undefined : rule
  }

  /** Returns what the key in `[start, end)` says about the texts in its value. */
  decisionOf(bytes: Buffer, start: number, end: number): Decision {
    return this.#decide(keyText(bytes, start, end))
  }

  #decide(key: string): Decision {
    if (ID_KEYS.test(key)) return 'decided'
    if (EXCEPTION_KEYS.test(key)) return this.patternsOf('exception')
    if (!OWN_KEYS.test(key) && this.#keys.find(key) !== undefined) return 'decided'
    const pattern = this.#patternKeys?.find(key)
    return pattern === undefined ? [] : [pattern]
  }

  /** Returns the rules whose patterns are looked for in a field. */
  patternsOf(field: PatternField): readonly ScrubbingRule[] {
    return this.#patterns?.of(field) ?? []
  }

  /**
   * Returns the parts of the text `[start, end)` to replace, in order. Kinds of values are looked for from `from` on, and the
   * patterns of these rules in all of it.
   */
  findParts(
    bytes: Uint8Array,
    text: Part,
    patterns: readonly ScrubbingRule[],
    from = text.start,
  ): readonly FoundValue[] {
    const values = this.#scanner?.findAll(bytes, text, from) ?? []
    if (patterns.length === 0) return values
    return inOrder([...values, ...(this.#patterns?.findAll(bytes, text, patterns) ?? [])])
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

  /** Returns a text with the parts replaced that match a rule, the same if there are none. Adds the rules that did so. */
  scrubString(text: string, patterns: readonly ScrubbingRule[] = [], used: ScrubbingRule[] = []): string {
    if (!this.readsTexts) return text
    const bytes = Buffer.from(text)
    const scrubbed = this.scrubBytes(bytes, patterns, used)
    return scrubbed === bytes ? text : scrubbed.toString()
  }

  /** Returns bytes of any form with the parts replaced that match a rule, the same if there are none. Adds these rules. */
  scrubBytes(bytes: Buffer, patterns: readonly ScrubbingRule[] = [], used: ScrubbingRule[] = []): Buffer {
    const pieces: Buffer[] = []
    let at = 0
    for (const { start, end, rule } of this.findParts(bytes, { start: 0, end: bytes.length }, patterns)) {
      used.push(rule)
      const text = this.replace(rule, () => bytes.subarray(start, end)) ?? ''
      pieces.push(bytes.subarray(at, start), Buffer.from(text))
      at = end
    }
    return at === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(at)])
  }

  /** Returns the text of a JSON value with the values of matching keys and parts of texts replaced. */
  scrubText(json: string): string {
    return replaceInJson<readonly ScrubbingRule[]>(json, [], {
      member: (key, outer, valueText) => {
        const rule = this.ruleOf(key)
        if (rule !== undefined) return JSON.stringify(this.replace(rule, () => textOfJson(valueText())) ?? null)
        const decision = this.readsTexts ? this.#decide(key) : 'decided'
        return decision === 'decided'
          ? { skip: this.readsTexts }
          : { key: [], inner: decision.length > 0 ? decision : outer }
      },
      literal: (literal, patterns) => {
        if (!this.readsTexts) return undefined
        const value: unknown = JSON.parse(literal)
        const scrubbed = this.scrubJson(value, [], patterns)
        return scrubbed === value ? undefined : JSON.stringify(scrubbed)
      },
    })
  }

  /**
   * Returns a JSON value with the values of matching keys and parts of texts replaced, the same if there are none. Adds the rules
   * that did so.
   */
  scrubJson(value: unknown, used: ScrubbingRule[] = [], patterns: readonly ScrubbingRule[] = [], depth = 0): unknown {
    if (typeof value === 'string') return this.scrubString(value, patterns, used)
    if (typeof value === 'number') return this.#scrubNumber(value, used)
    if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value
    const before = used.length
    if (Array.isArray(value)) {
      const items = value.map(item => this.scrubJson(item, used, patterns, depth + 1))
      return used.length === before ? value : items
    }
    const entries = Object.entries(value).map(([key, member]) => {
      const rule = this.ruleOf(key)
      if (rule === undefined) {
        const decision = this.#decide(key)
        if (decision === 'decided') return [key, member] as const
        const name = this.scrubString(key, [], used)
        return [name, this.scrubJson(member, used, decision.length > 0 ? decision : patterns, depth + 1)] as const
      }
      used.push(rule)
      const textOf = () => (typeof member === 'string' ? member : JSON.stringify(member))
      return [key, this.replace(rule, textOf) ?? null] as const
    })
    return used.length === before ? value : Object.fromEntries(entries)
  }

  #scrubNumber(value: number, used: ScrubbingRule[]): unknown {
    const rule = this.#scanner?.ruleOfNumber(value)
    if (rule === undefined) return value
    used.push(rule)
    return this.replace(rule, () => String(value)) ?? null
  }
}

/** Scrubs by the default rules. */
export const DEFAULT_SCRUBBER = new Scrubber({ revision: 0, rules: DEFAULT_SCRUBBING })

/** Returns a text itself, and other values as JSON without spaces. */
function textOfJson(json: string): string {
  const value: unknown = JSON.parse(json)
  return typeof value === 'string' ? value : JSON.stringify(value)
}
