import { JsonTokenizer, type ValueKind } from '../../shared/json/json-tokenizer.ts'

/**
 * Validates JSON lines in chunks and reads the time and type of each event. Building the events would cost too much:
 * `JSON.parse` of 100 MiB of `{},{},…` takes 2 GB.
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
  #line = 1
  #timestamp: number | undefined
  #type: number | undefined

  constructor() {
    super({ text: 'lines', maxDepth: MAX_DEPTH, reportDepth: 1, names: ['timestamp', 'type'] })
  }

  /** The reason why the text is refused. */
  get fault(): string {
    return `line ${this.#line} is not a JSON object`
  }

  protected override onLine(): void {
    this.#line++
  }

  /** The last of several members with the same name counts, as in JSON.parse. */
  protected override onValueEnd(kind: ValueKind): void {
    if (this.depth === 0) this.#endEvent()
    else if (this.name === TIMESTAMP) this.#timestamp = kind === 'number' ? this.numberValue() : undefined
    else if (this.name === TYPE) this.#type = kind === 'number' ? this.numberValue() : undefined
  }

  #endEvent(): void {
    this.events++
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
/** A node of a page is an object in an array. Browsers limit the nesting of the pages that they parse to 512. */
const MAX_DEPTH = 10_000
