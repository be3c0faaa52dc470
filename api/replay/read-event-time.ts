import { JsonTokenizer, type ValueKind } from '../../shared/json/json-tokenizer.ts'

/**
 * Returns the member `timestamp` of an event in ms, or undefined if it is not a number within the range of a Date. The
 * line must be a valid JSON object. A line may be a whole page, which is too long to parse for one number.
 */
export function readEventTime(line: Uint8Array): number | undefined {
  return reader.read(line)
}

/** The greatest time that a Date can represent. */
const MAX_TIME_MS = 8.64e15

class EventTimeReader extends JsonTokenizer {
  #timeMs: number | undefined

  constructor() {
    super({ maxDepth: Number.POSITIVE_INFINITY, reportDepth: 1, names: ['timestamp'], checks: 'nothing' })
  }

  read(line: Uint8Array): number | undefined {
    this.restart()
    this.#timeMs = undefined
    this.add(line)
    return this.#timeMs
  }

  /** The last of several members with the same name counts, as in JSON.parse. */
  protected override onValueEnd(kind: ValueKind): void {
    if (this.depth !== 1 || this.name === -1) return
    const value = kind === 'number' ? this.numberValue() : undefined
    this.#timeMs = value !== undefined && Math.abs(value) <= MAX_TIME_MS ? value : undefined
  }
}

const reader = new EventTimeReader()
