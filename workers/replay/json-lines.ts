import { JsonMachine } from '../../shared/json/json-machine.ts'
import { COMMA_OR_END, FAILED, LINE, LINE_END, type State } from '../../shared/json/json-states.ts'

/**
 * Checks JSON lines as their bytes come, and reads what each event tells of itself. Nothing is built of what is read, so
 * that a line of any length and shape costs no memory: `JSON.parse` of 100 MiB of `{},{},…` would cost 2 GB.
 *
 *   lines := line ("\n" line)*        line := blanks (object blanks)?
 */
export class JsonLinesScanner extends JsonMachine {
  /** Objects read to their end. */
  events = 0
  /** Of their member `timestamp`, where it is a number that can be a time (ms). */
  firstMs = Number.POSITIVE_INFINITY
  lastMs = Number.NEGATIVE_INFINITY
  hasFullSnapshot = false
  #line = 1
  /** The last key of the event's own members. */
  #key: string | undefined
  #timestamp: number | undefined
  #type: number | undefined

  constructor() {
    super({ state: LINE, maxDepth: MAX_DEPTH, lineBreakIsBlank: false })
  }

  /** False: the last line is cut short. */
  end(): boolean {
    if (this.state === LINE || this.state === LINE_END) return true
    this.state = FAILED
    return false
  }

  get fault(): string {
    return `line ${this.#line} is not a JSON object`
  }

  protected onOutside(state: State, byte: number): State {
    if (byte === 0x0a) {
      this.#line++
      return LINE
    }
    if (byte === 0x7b && state === LINE) return this.open(1)
    return byte === 0x20 || byte === 0x09 || byte === 0x0d ? state : FAILED
  }

  protected onKey(): void {
    this.#key = this.tokenText()
  }

  /** Of members of one name the last counts, as for JSON.parse. */
  protected onValue(): void {
    if (this.depth !== 1) return
    if (this.#key === 'timestamp') this.#timestamp = undefined
    else if (this.#key === 'type') this.#type = undefined
  }

  protected onNumber(): void {
    if (this.depth !== 1) return
    const text = this.tokenText()
    if (text === undefined) return
    if (this.#key === 'timestamp') this.#timestamp = Number(text)
    else if (this.#key === 'type') this.#type = Number(text)
  }

  protected onClose(): State {
    if (this.depth > 0) return COMMA_OR_END
    this.events++
    if (this.#timestamp !== undefined && Math.abs(this.#timestamp) <= MAX_TIME_MS) {
      this.firstMs = Math.min(this.firstMs, this.#timestamp)
      this.lastMs = Math.max(this.lastMs, this.#timestamp)
    }
    if (this.#type === FULL_SNAPSHOT) this.hasFullSnapshot = true
    this.#timestamp = undefined
    this.#type = undefined
    return LINE_END
  }
}

/** `EventType.FullSnapshot` of rrweb. */
const FULL_SNAPSHOT = 2
/** What a Date can hold. */
const MAX_TIME_MS = 8.64e15
/** A node of a page is an object in an array; browsers stop nesting the pages that they parse at 512. */
const MAX_DEPTH = 10_000
