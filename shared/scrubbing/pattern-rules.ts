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
/**
 * Bytes of texts times instructions of patterns that may be searched in one request, which takes less than a second. Then further
 * texts are replaced as a whole.
 */
const REQUEST_STEPS = 32 * MIB

/** Compiles a pattern. Throws an Error whose message states the rule that it breaks. */
export function compilePattern(pattern: string): RE2JS {
  const expression = parsePattern(pattern)
  if (expression.programSize() > PROGRAM_SIZE_MAX)
    throw new Error('is too large: use smaller repetitions and alternatives')
  if (expression.matches('')) throw new Error('must not match an empty text')
  return expression
}

function compiled(pattern: string): RE2JS | undefined {
  try {
    return compilePattern(pattern)
  } catch {
    // Patterns are checked before they are kept, so this one is from another version. Its workspace cannot wait for a new one.
    return undefined
  }
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
  /** RE2 matches in time linear in the text. Undefined if this version does not take the pattern: then whole texts are replaced. */
  readonly #expressions: ReadonlyMap<ScrubbingRule, RE2JS | undefined>
  readonly #byField = new Map<PatternField, readonly ScrubbingRule[]>()
  #remainingSteps = REQUEST_STEPS

  constructor(rules: readonly ScrubbingRule[]) {
    this.#expressions = new Map(rules.map(rule => [rule, compiled(rule.pattern as string)]))
    for (const rule of rules) for (const field of rule.fields ?? []) this.#byField.set(field, [...this.of(field), rule])
  }

  /** Returns the rules that look into a field. */
  of(field: PatternField): readonly ScrubbingRule[] {
    return this.#byField.get(field) ?? []
  }

  /** Begins a request. */
  begin(): void {
    this.#remainingSteps = REQUEST_STEPS
  }

  /** Returns the matches of these rules in a text, in the order of the rules. They may overlap. */
  findAll(bytes: Uint8Array, { start, end }: Part, rules: readonly ScrubbingRule[]): FoundValue[] {
    const text = bytes.subarray(start, end)
    const found: FoundValue[] = []
    for (const rule of rules) {
      const expression = this.#expressions.get(rule)
      this.#remainingSteps -= text.length * (expression?.programSize() ?? 0)
      if (expression === undefined || text.length > TEXT_BYTES || this.#remainingSteps < 0)
        return [{ start, end, rule }]
      const matcher = expression.matcher(text)
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
