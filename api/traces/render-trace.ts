import { SPAN_KINDS, SPAN_STATUSES } from '../../schemas/http/traces/schemas.ts'
import { millisecondsBetween } from '../http/format-time.ts'
import { JsonWriter } from './json-writer.ts'
import type { TraceColumns } from './load-columns.ts'
import { type RowTexts, TEXT } from './row-texts.ts'
import { shownHttpStatus } from './spans/present-span.ts'

/** Columns with the texts that a response shows. */
export interface ShownColumns extends TraceColumns {
  readonly texts: RowTexts
}

/** A span of the response. */
export interface ShownSpan {
  /** Its number in the skeleton. */
  readonly number: number
  /** Whether the span has a parent that is not retained in the trace. */
  readonly isParentMissing: boolean
  readonly occurrenceCount: number
}

/** Counts and times of the whole trace. */
interface TraceTotals {
  readonly rootCount: number
  readonly danglingParentCount: number
  readonly startedAtUnixNano: bigint
  readonly endedAtUnixNano: bigint
  readonly truncated: boolean
}

/** Bytes of a span in JSON without its texts, at most. */
const SPAN_BYTES = 480
/** Bytes of all that is not a span. */
const FRAME_BYTES = 512

const KINDS = SPAN_KINDS.map(kind => ascii(`,"kind":"${kind}","serviceName":`))
const STATUSES = SPAN_STATUSES.map(status => ascii(`,"statusCode":"${status}"`))

const SPAN_ID = ascii('{"spanId":"')
const COMMA_SPAN_ID = ascii(',{"spanId":"')
const PARENT = ascii('","parentSpanId":"')
const DANGLING_PARENT = ascii('","danglingParentSpanId":"')
const NAME = ascii('","name":')
const START = ascii(',"startTimeUnixNano":"')
const END = ascii('","endTimeUnixNano":"')
const DURATION = ascii('","durationMs":')
const STATUS_MESSAGE = ascii(',"statusMessage":')
const SESSION_ID = ascii(',"sessionId":')
const HTTP_ROUTE = ascii(',"httpRoute":')
const HTTP_STATUS_CODE = ascii(',"httpStatusCode":')
const OCCURRENCE_COUNT = ascii(',"occurrenceCount":')
const TIMESTAMP = ascii(',"timestamp":"')
const SPAN_END = ascii('"}')

function ascii(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

/** Returns the JSON of a trace (docs/api/findings.md#trace). `spans` is in the order of the response. */
export function renderTrace(
  traceId: string,
  columns: ShownColumns,
  spans: readonly ShownSpan[],
  totals: TraceTotals,
): Buffer {
  // The writer grows where many characters are escaped.
  const json = new JsonWriter(FRAME_BYTES + spans.length * SPAN_BYTES + columns.texts.totalBytes)
  json.ascii(`{"traceId":"${traceId}","spans":[`)
  const writer = new SpanWriter(json, columns)
  for (let i = 0; i < spans.length; i++) {
    json.piece(i === 0 ? SPAN_ID : COMMA_SPAN_ID)
    writer.write(spans[i] as ShownSpan)
  }
  const { startedAtUnixNano, endedAtUnixNano } = totals
  const rest = {
    rootCount: totals.rootCount,
    danglingParentCount: totals.danglingParentCount,
    startedAtUnixNano: String(startedAtUnixNano),
    endedAtUnixNano: String(endedAtUnixNano),
    wallDurationMs: millisecondsBetween(startedAtUnixNano, endedAtUnixNano),
    truncated: totals.truncated,
  }
  json.ascii(`],${JSON.stringify(rest).slice(1)}`)
  return json.finish()
}

/** Writes the fields of spans after the beginning of their first one. */
class SpanWriter {
  readonly #json: JsonWriter
  readonly #columns: ShownColumns
  /** Unix nanoseconds that were read last, as seconds and rest. */
  #seconds = 0
  #nanos = 0

  constructor(json: JsonWriter, columns: ShownColumns) {
    this.#json = json
    this.#columns = columns
  }

  write({ number, isParentMissing, occurrenceCount }: ShownSpan): void {
    const json = this.#json
    const { skeleton, facts, texts } = this.#columns
    const row = skeleton.rowOf(number)
    this.#id(skeleton.ids, number)
    if (skeleton.parentIds[2 * number] !== 0 || skeleton.parentIds[2 * number + 1] !== 0) {
      json.piece(isParentMissing ? DANGLING_PARENT : PARENT)
      this.#id(skeleton.parentIds, number)
    }
    json.piece(NAME)
    texts.write(json, row, TEXT.name)
    json.piece(KINDS[facts.kinds[row] ?? 0] ?? (KINDS[0] as Buffer))
    texts.write(json, row, TEXT.serviceName)
    json.piece(START)
    this.#readTime(skeleton.starts, number)
    const startSeconds = this.#seconds
    const startNanos = this.#nanos
    json.unixNano(startSeconds, startNanos)
    json.piece(END)
    this.#readTime(skeleton.ends, number)
    json.unixNano(this.#seconds, this.#nanos)
    json.piece(DURATION)
    json.milliseconds((this.#seconds - startSeconds) * 1e9 + (this.#nanos - startNanos))
    json.piece(STATUSES[facts.statuses[row] ?? 0] ?? (STATUSES[0] as Buffer))
    this.#textIfAny(STATUS_MESSAGE, row, TEXT.statusMessage)
    this.#textIfAny(SESSION_ID, row, TEXT.sessionId)
    this.#textIfAny(HTTP_ROUTE, row, TEXT.httpRoute)
    const status = shownHttpStatus(facts.httpStatusCodes[row] ?? 0)
    if (status !== undefined) {
      json.piece(HTTP_STATUS_CODE)
      json.integer(status)
    }
    json.piece(OCCURRENCE_COUNT)
    json.integer(occurrenceCount)
    json.piece(TIMESTAMP)
    json.timestamp(startSeconds, startNanos)
    json.piece(SPAN_END)
  }

  #id(words: Uint32Array, number: number): void {
    this.#json.hexWord(words[2 * number] ?? 0)
    this.#json.hexWord(words[2 * number + 1] ?? 0)
  }

  #textIfAny(name: Buffer, row: number, text: number): void {
    const { texts } = this.#columns
    if (texts.isEmpty(row, text)) return
    this.#json.piece(name)
    texts.write(this.#json, row, text)
  }

  /** Divides a time by 10^9. Each step stays below 2^53. */
  #readTime(words: Uint32Array, number: number): void {
    const high = words[2 * number] ?? 0
    const low = words[2 * number + 1] ?? 0
    const ofHigh = Math.floor(high / 1e9)
    const middle = (high - ofHigh * 1e9) * 0x1_0000 + (low >>> 16)
    const ofMiddle = Math.floor(middle / 1e9)
    const last = (middle - ofMiddle * 1e9) * 0x1_0000 + (low & 0xffff)
    const ofLast = Math.floor(last / 1e9)
    this.#seconds = ofHigh * 0x1_0000_0000 + ofMiddle * 0x1_0000 + ofLast
    this.#nanos = last - ofLast * 1e9
  }
}
