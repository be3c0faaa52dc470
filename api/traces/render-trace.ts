import { SPAN_AT } from '../../clickhouse/queries/traces/span-row.ts'
import { COLUMN_AT, type SpanRows, TEXTS } from '../../clickhouse/queries/traces/span-rows.ts'
import { SPAN_KINDS, SPAN_STATUSES } from '../../schemas/http/traces/schemas.ts'
import { millisecondsBetween } from '../http/format-time.ts'
import { JsonWriter, jsonTextBytes } from './json-writer.ts'
import { shownHttpStatus } from './shown-http-status.ts'

/** A span of the response. */
interface ShownSpan {
  /** Position of its row. */
  readonly row: number
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

/** Returns the bytes that the texts of a row have in a response. */
export function textBytesOf(rows: SpanRows, row: number): number {
  let size = 0
  for (let text = 0, at = row + COLUMN_AT.texts; text < TEXTS; text++) {
    at = rows.readText(at)
    size += jsonTextBytes(rows.bytes, rows.textStart, at)
  }
  return size
}

/** Returns the JSON of a trace (docs/api/findings.md#trace). `spans` is in the order of the response. */
export function renderTrace(traceId: string, rows: SpanRows, spans: readonly ShownSpan[], totals: TraceTotals): Buffer {
  // Rows have their texts as they are; the writer grows where many characters are escaped.
  const meanRowBytes = Math.ceil(rows.bytes.length / Math.max(rows.rows.length, 1))
  const json = new JsonWriter(FRAME_BYTES + spans.length * (SPAN_BYTES + meanRowBytes))
  json.ascii(`{"traceId":"${traceId}","spans":[`)
  const writer = new SpanWriter(json, rows)
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
  readonly #rows: SpanRows
  /** Unix nanoseconds that were read last, as seconds and rest. */
  #seconds = 0
  #nanos = 0

  constructor(json: JsonWriter, rows: SpanRows) {
    this.#json = json
    this.#rows = rows
  }

  write({ row, isParentMissing, occurrenceCount }: ShownSpan): void {
    const json = this.#json
    const { bytes, view } = this.#rows
    json.hex(bytes, row + SPAN_AT.spanId, row + SPAN_AT.spanId + 8)
    const parent = row + SPAN_AT.parentSpanId
    if (view.getUint32(parent) !== 0 || view.getUint32(parent + 4) !== 0) {
      json.piece(isParentMissing ? DANGLING_PARENT : PARENT)
      json.hex(bytes, parent, parent + 8)
    }
    json.piece(NAME)
    let at = this.#text(row + COLUMN_AT.texts)
    json.piece((KINDS[bytes[row + COLUMN_AT.kind] as number] ?? KINDS[0]) as Buffer)
    at = this.#text(at)
    json.piece(START)
    this.#readTime(row + SPAN_AT.start)
    const startSeconds = this.#seconds
    const startNanos = this.#nanos
    json.unixNano(startSeconds, startNanos)
    json.piece(END)
    this.#readTime(row + SPAN_AT.end)
    json.unixNano(this.#seconds, this.#nanos)
    json.piece(DURATION)
    json.milliseconds((this.#seconds - startSeconds) * 1e9 + (this.#nanos - startNanos))
    json.piece((STATUSES[bytes[row + COLUMN_AT.statusCode] as number] ?? STATUSES[0]) as Buffer)
    at = this.#textIfAny(STATUS_MESSAGE, at)
    at = this.#textIfAny(SESSION_ID, at)
    this.#textIfAny(HTTP_ROUTE, at)
    const status = shownHttpStatus(view.getUint16(row + COLUMN_AT.httpStatusCode, true))
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

  #text(at: number): number {
    const rows = this.#rows
    const end = rows.readText(at)
    this.#json.text(rows.bytes, rows.textStart, end)
    return end
  }

  #textIfAny(name: Buffer, at: number): number {
    const rows = this.#rows
    const end = rows.readText(at)
    if (rows.textStart < end) {
      this.#json.piece(name)
      this.#json.text(rows.bytes, rows.textStart, end)
    }
    return end
  }

  /** Divides the UInt64 at `at` by 10^9. Each step stays below 2^53. */
  #readTime(at: number): void {
    const { view } = this.#rows
    const low = view.getUint32(at, true)
    const high = view.getUint32(at + 4, true)
    const ofHigh = Math.floor(high / 1e9)
    const middle = (high - ofHigh * 1e9) * 0x1_0000 + (low >>> 16)
    const ofMiddle = Math.floor(middle / 1e9)
    const last = (middle - ofMiddle * 1e9) * 0x1_0000 + (low & 0xffff)
    const ofLast = Math.floor(last / 1e9)
    this.#seconds = ofHigh * 0x1_0000_0000 + ofMiddle * 0x1_0000 + ofLast
    this.#nanos = last - ofLast * 1e9
  }
}
