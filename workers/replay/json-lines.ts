import { KIB, MIB } from '../../schemas/units.ts'
import { JsonTokenizer, type ValueKind } from '../../shared/json/json-tokenizer.ts'

/** Limits of a chunk (docs/api/sessions.md#replay). Recorders send a few thousand events in one. */
export const CHUNK_LIMITS = {
  events: 100_000,
  /** Lines, with or without an event. */
  lines: 200_000,
  /** JSON values of all events together. A snapshot of a page with 100,000 nodes has a million. */
  values: 10_000_000,
  lineBytes: 16 * MIB,
  /** Blanks in a row between two events. */
  blankBytes: 64 * KIB,
  /** A node of a page is an object in an array. Browsers limit the nesting of the pages that they parse to 512. */
  depth: 10_000,
} as const

/** The rule that a chunk breaks: `undefined` if it is not JSON lines. */
type BrokenLimit = 'too_many_events' | 'too_many_values' | 'too_many_blanks' | 'line_too_long'

/**
 * Validates JSON lines in chunks and reads the time and type of each event. Building the events would cost too much:
 * `JSON.parse` of 100 MiB of `{},{},…` takes 2 GB. Stops at the first limit that is passed, so that 100 KB that inflate to
 * 34 million events or blank lines cost no more than their first part.
 *
 *   lines := line ("\n" line)*        line := blanks (object blanks)?
 */
export class JsonLinesScanner extends JsonTokenizer {
  /** Number of complete objects. */
  events = 0
  /** Range of the members `timestamp` in ms, as far as they are numbers within the range of a Date. */
  firstMs = Number.POSITIVE_INFINITY
  lastMs = Number.NEGATIVE_INFINITY
  hasFullSnapshot = false
  /** The limit that the text has passed. */
  brokenLimit: BrokenLimit | undefined
  #line = 1
  #lineStart = 0
  /** End of the last event. */
  #eventEnd = 0
  #bytes = 0
  #timestamp: number | undefined
  #type: number | undefined

  constructor() {
    super({ text: 'lines', maxDepth: CHUNK_LIMITS.depth, reportDepth: 1, names: ['timestamp', 'type'] })
  }

  /** The reason why the text is refused. */
  get fault(): string {
    return `line ${this.#line} is not a JSON object`
  }

  override add(bytes: Uint8Array): boolean {
    if (!super.add(bytes)) return false
    this.#bytes += bytes.length
    if (this.values > CHUNK_LIMITS.values) this.#refuse('too_many_values')
    if (this.#bytes - this.#lineStart > CHUNK_LIMITS.lineBytes) this.#refuse('line_too_long')
    if (this.depth === 0) this.#checkBlanks(this.#bytes)
    return this.brokenLimit === undefined
  }

  override end(): boolean {
    return this.brokenLimit === undefined && super.end()
  }

  protected override onLine(position: number): void {
    if (position - this.#lineStart > CHUNK_LIMITS.lineBytes) this.#refuse('line_too_long')
    this.#lineStart = position + 1
    if (++this.#line > CHUNK_LIMITS.lines) this.#refuse('too_many_blanks')
  }

  protected override onValueStart(_kind: ValueKind, start: number): void {
    if (this.depth === 0) this.#checkBlanks(start)
  }

  /** Checks the blanks between the last event and this position. */
  #checkBlanks(position: number): void {
    if (position - this.#eventEnd > CHUNK_LIMITS.blankBytes) this.#refuse('too_many_blanks')
  }

  #refuse(limit: BrokenLimit): void {
    this.brokenLimit ??= limit
  }

  /** The last of several members with the same name counts, as in JSON.parse. */
  protected override onValueEnd(kind: ValueKind, _start: number, end: number): void {
    if (this.depth === 0) this.#endEvent(end)
    else if (this.name === TIMESTAMP) this.#timestamp = kind === 'number' ? this.numberValue() : undefined
    else if (this.name === TYPE) this.#type = kind === 'number' ? this.numberValue() : undefined
  }

  #endEvent(end: number): void {
    this.#eventEnd = end
    if (++this.events > CHUNK_LIMITS.events) this.#refuse('too_many_events')
    if (this.#timestamp !== undefined && Math.abs(this.#timestamp) <= MAX_TIME_MS) {
      this.firstMs = Math.min(this.firstMs, this.#timestamp)
      this.lastMs = Math.max(this.lastMs, this.#timestamp)
    }
    if (this.#type === FULL_SNAPSHOT) this.hasFullSnapshot = true
    this.#timestamp = undefined
    this.#type = undefined
  }
}

/** Indexes in the names that the constructor gives to the tokenizer. */
const TIMESTAMP = 0
const TYPE = 1
/** `EventType.FullSnapshot` of rrweb. */
const FULL_SNAPSHOT = 2
/** The greatest time that a Date can represent. */
const MAX_TIME_MS = 8.64e15
