import { JsonTokenizer, type TokenizerOptions, type ValueKind } from '../../shared/json/json-tokenizer.ts'

/**
 * Returns the member `timestamp` of an event in ms, or undefined if it is not a number within the range of a Date. The
 * line must be a valid JSON object, in one or more pieces. It may be a whole page, which is too long to parse for one
 * number.
 */
export function readEventTime(pieces: readonly Uint8Array[]): number | undefined {
  const reader = pieces.length === 1 ? wholeLines : linesInPieces
  reader.begin()
  for (const piece of pieces) reader.add(piece)
  return reader.timeMs
}

/** The greatest time that a Date can represent. */
const MAX_TIME_MS = 8.64e15

/** Reads the time of an event from the pieces of its line. */
export class EventTimeReader extends JsonTokenizer {
  timeMs: number | undefined

  constructor(checks: TokenizerOptions['checks'] = 'structure') {
    super({ maxDepth: Number.POSITIVE_INFINITY, reportDepth: 1, names: ['timestamp'], checks })
  }

  /** Begins another line. */
  begin(): void {
    this.restart()
    this.timeMs = undefined
  }

  /** The last of several members with the same name counts, as in JSON.parse. */
  protected override onValueEnd(kind: ValueKind): void {
    if (this.depth !== 1 || this.name === -1) return
    const value = kind === 'number' ? this.numberValue() : undefined
    this.timeMs = value !== undefined && Math.abs(value) <= MAX_TIME_MS ? value : undefined
  }
}

/** Passes over what it does not report, which takes the whole text in one piece. */
const wholeLines = new EventTimeReader('nothing')
const linesInPieces = new EventTimeReader()
