import { RE2JS } from 're2js'
import type { PatternField, ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { errorMessage } from '../runtime/errors.ts'
import type { FoundValue } from './value-scanner.ts'
import type { Part } from './values/part.ts'

/** The most instructions of a compiled pattern: searching takes time in proportion to them. */
const PROGRAM_SIZE_MAX = 500
/** A longer text in which a pattern is looked for is replaced as a whole. */
const TEXT_BYTES = 64 * KIB
/** Bytes that the patterns of a workspace may search in one request. Then its texts are replaced as a whole. */
const REQUEST_BYTES = MIB

/** A pattern that was compiled. RE2 matches in time linear in the text. */
interface Pattern {
  readonly rule: ScrubbingRule
  readonly expression: RE2JS
}

/** Compiles a pattern. Throws an Error whose message states the rule that it breaks. */
export function compilePattern(pattern: string): RE2JS {
  const expression = parsePattern(pattern)
  if (expression.programSize() > PROGRAM_SIZE_MAX)
    throw new Error('is too large: use smaller repetitions and alternatives')
  if (expression.matches('')) throw new Error('must not match an empty text')
  return expression
}

function parsePattern(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (cause) {
    const fault = errorMessage(cause).replace(/^error parsing regexp: /, '')
    throw new Error(`must be an expression of RE2: ${fault}`, { cause })
  }
}

/** The patterns of rules. */
export class PatternRules {
  readonly #byRule: ReadonlyMap<ScrubbingRule, Pattern>
  readonly #byField = new Map<PatternField, readonly ScrubbingRule[]>()
  #remainingBytes = REQUEST_BYTES

  constructor(rules: readonly ScrubbingRule[]) {
    const compiled = rules.map(rule => ({ rule, expression: compilePattern(rule.pattern as string) }))
    this.#byRule = new Map(compiled.map(pattern => [pattern.rule, pattern]))
    for (const rule of rules) for (const field of rule.fields ?? []) this.#byField.set(field, [...this.of(field), rule])
  }

  /** Returns the rules that look into a field. */
  of(field: PatternField): readonly ScrubbingRule[] {
    return this.#byField.get(field) ?? []
  }

  /** Begins a request. */
  begin(): void {
    this.#remainingBytes = REQUEST_BYTES
  }

  /** Returns the matches of these rules in a text, in the order of the rules. They may overlap. */
  findAll(bytes: Uint8Array, { start, end }: Part, rules: readonly ScrubbingRule[]): FoundValue[] {
    const text = bytes.subarray(start, end)
    const found: FoundValue[] = []
    for (const rule of rules) {
      this.#remainingBytes -= text.length
      if (text.length > TEXT_BYTES || this.#remainingBytes < 0) return [{ start, end, rule }]
      const matcher = (this.#byRule.get(rule) as Pattern).expression.matcher(text)
      while (matcher.find()) {
        const part = { start: start + matcher.start(), end: start + matcher.end() }
        if (part.end > part.start) found.push({ ...part, rule })
      }
    }
    return found
  }
}

/** Returns parts in the order of their places, and overlapping ones as one with the rule of the first. */
export function inOrder(parts: readonly FoundValue[]): FoundValue[] {
  const ordered: FoundValue[] = []
  for (const part of parts.toSorted((one, other) => one.start - other.start || other.end - one.end)) {
    const last = ordered.at(-1)
    if (last === undefined || part.start >= last.end) ordered.push(part)
    else if (part.end > last.end) ordered[ordered.length - 1] = { ...last, end: part.end }
  }
  return ordered
}
