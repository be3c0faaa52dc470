import type { ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { KIB } from '../../schemas/units.ts'
import { Scrubber, type ScrubberOptions } from '../../shared/scrubbing/scrubber.ts'
import type { ValueScanner } from '../../shared/scrubbing/value-scanner.ts'
import type { Part } from '../../shared/scrubbing/values/part.ts'
import { UnescapedText } from './unescaped-text.ts'

/** Scrubbed lines are passed on in pieces of about these bytes. */
const PIECE_BYTES = 64 * KIB
/** The most values that are replaced in a chunk. To hash as many takes about two seconds. */
export const SCRUBBED_VALUES_MAX = 1_000_000
/** Longer numbers are no numbers of cards. */
const NUMBER_BYTES = 32

/** A part of the lines, and the text that takes its place. */
interface Replacement extends Part {
  readonly by: string
}

/** A string without its quotes, or a number. */
interface Literal extends Part {
  readonly kind: 'number' | 'plain' | 'escaped'
  /** The position after it, outside of strings. */
  readonly next: number
}

/**
 * Replaces values in JSON lines: in strings and keys, as `Scrubber.scrubString` does in their texts, and in numbers. All other
 * bytes stay. It takes linear time and builds no strings of lines, because a line may have 16 MiB, and a thread has a small heap.
 */
export class LineScrubber {
  #values = 0
  readonly #scrubber: Scrubber
  readonly #scanner: ValueScanner | undefined

  constructor(rules: ScrubberOptions) {
    this.#scrubber = new Scrubber(rules)
    this.#scanner = this.#scrubber.scanner
  }

  /** Whether the chunk has more values than may be replaced. The lines end there. */
  get isOverLimit(): boolean {
    return this.#values > SCRUBBED_VALUES_MAX
  }

  /** Returns the number of values that were replaced, by the name of the rule; undefined if there are none. */
  takeCounts(): ReadonlyMap<string, number> | undefined {
    return this.#scrubber.takeCounts()
  }

  /** Returns whether anything in these whole lines is replaced. */
  hasValues(lines: Buffer): boolean {
    return this.#scrubber.counts.uncounted(() => this.#replacements(lines).next().done !== true)
  }

  /** Returns these whole lines with values replaced, in pieces. Ends early with more values than a chunk may have. */
  *scrub(lines: Buffer): Generator<Buffer> {
    let parts: Buffer[] = []
    let bytes = 0
    let from = 0
    for (const { start, end, by } of this.#replacements(lines)) {
      if (++this.#values > SCRUBBED_VALUES_MAX) return
      const replacement = Buffer.from(by)
      parts.push(lines.subarray(from, start), replacement)
      bytes += start - from + replacement.length
      from = end
      if (bytes < PIECE_BYTES) continue
      yield Buffer.concat(parts, bytes)
      parts = []
      bytes = 0
    }
    const rest = lines.subarray(from)
    yield parts.length === 0 ? rest : Buffer.concat([...parts, rest], bytes + rest.length)
  }

  *#replacements(lines: Buffer): Generator<Replacement> {
    const scanner = this.#scanner
    if (scanner === undefined) return
    const { length } = lines
    let next = 0
    let value = scanner.scan(lines, 0, length)
    let escaped = findEscape(lines, 0)
    while (value < length || escaped < length) {
      const literal = literalAround(lines, next, Math.min(value, escaped))
      if (literal.kind === 'number') yield* this.#inNumber(lines, literal)
      else if (literal.kind === 'plain') yield* this.#inPlain(scanner, lines, literal)
      else yield* this.#inEscaped(scanner, lines, literal)
      next = literal.next
      // Each is looked for once up to where it is, so that a pass is linear.
      if (value < next) value = scanner.scan(lines, next, length)
      if (escaped < next) escaped = findEscape(lines, next)
    }
  }

  *#inPlain(scanner: ValueScanner, lines: Buffer, literal: Literal): Generator<Replacement> {
    for (const { start, end, rule } of scanner.findEach(lines, literal)) {
      yield { start, end, by: this.#replace(rule, lines.subarray(start, end)) }
    }
  }

  /** The bytes of a string with escapes may hide a value, or what is beside it. */
  *#inEscaped(scanner: ValueScanner, lines: Buffer, literal: Literal): Generator<Replacement> {
    const text = new UnescapedText(lines, literal)
    for (const { start, end, rule } of scanner.findEach(text.bytes, { start: 0, end: text.bytes.length })) {
      const by = this.#replace(rule, text.bytes.subarray(start, end))
      yield { start: text.rawOf(start), end: text.rawOf(end), by }
    }
  }

  /** The number of a card becomes a text. */
  *#inNumber(lines: Buffer, { start, end }: Literal): Generator<Replacement> {
    if (end - start > NUMBER_BYTES) return
    const text = lines.toString('latin1', start, end)
    const value = /^\d+$/.test(text) ? BigInt(text) : Number(text)
    const rule = this.#scanner?.ruleOfNumber(value)
    if (rule === undefined) return
    const by = this.#scrubber.replace(rule, () => String(value))
    yield { start, end, by: JSON.stringify(by ?? null) }
  }

  /** No replacement needs an escape. */
  #replace(rule: ScrubbingRule, value: Buffer): string {
    return this.#scrubber.replace(rule, () => value) ?? ''
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LINE_FEED = 0x0a
const ESCAPE = '\\u'

/** Returns the next escape of any character, else the end. */
function findEscape(lines: Buffer, from: number): number {
  const at = lines.indexOf(ESCAPE, from)
  return at < 0 ? lines.length : at
}

/**
 * Returns the string or number around `point`. `from` is before it and outside of strings. A string ends with its line at the
 * latest, so that an invalid line does not change how the others are read.
 */
function literalAround(lines: Buffer, from: number, point: number): Literal {
  for (let at = from; ; at++) {
    while (at <= point && lines[at] !== QUOTE) at++
    if (at > point) return numberAround(lines, from, point)
    const start = at + 1
    let kind: Literal['kind'] = 'plain'
    for (at = start; at < lines.length && lines[at] !== QUOTE && lines[at] !== LINE_FEED; at++) {
      if (lines[at] !== BACKSLASH) continue
      kind = 'escaped'
      at++
    }
    const end = Math.min(at, lines.length)
    if (point < end) return { kind, start, end, next: Math.min(end + 1, lines.length) }
  }
}

function numberAround(lines: Buffer, from: number, point: number): Literal {
  let start = point
  while (start > from && isOfNumber(lines[start - 1] as number)) start--
  let end = point + 1
  while (end < lines.length && isOfNumber(lines[end] as number)) end++
  return { kind: 'number', start, end, next: end }
}

/** Returns whether a byte is a digit or one of `+-.Ee`. */
function isOfNumber(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e || (byte | 0x20) === 0x65
}
