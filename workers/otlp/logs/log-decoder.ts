import { ExceptionSource } from '../../../clickhouse/tables/exceptions-table.ts'
import type { LogsTable } from '../../../clickhouse/tables/logs-table.ts'
import type { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { appendAnyValue, uncounted, ValueType } from '../protobuf/any-value.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { endsWithKey, type KeyBytes, keyBytes } from '../protobuf/key-bytes.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'
import { PromotedAttributes } from '../protobuf/promoted-attributes.ts'
import type { PayloadSource, RowRejection } from '../protobuf/refusal.ts'
import type { ResourceEntry } from '../protobuf/resource-cache.ts'
import { MessagePieces, type WireCursor } from '../protobuf/wire.ts'

/** The tags of the fields of LogRecord. A field with another wire type is an unknown field. */
const TIME_TAG = 0x09
const SEVERITY_NUMBER_TAG = 0x10
const SEVERITY_TEXT_TAG = 0x1a
const BODY_TAG = 0x2a
const ATTRIBUTE_TAG = 0x32
const DROPPED_ATTRIBUTES_TAG = 0x38
const FLAGS_TAG = 0x45
const TRACE_ID_TAG = 0x4a
const SPAN_ID_TAG = 0x52
const OBSERVED_TIME_TAG = 0x59
const EVENT_NAME_TAG = 0x62

/** Tag of AnyValue's `string string_value = 1`. */
const STRING_VALUE_TAG = 0x0a

const MAX_SEVERITY_NUMBER = 255

/** A record with one of these attributes is an exception (OpenTelemetry semantic conventions, "Exceptions in logs"). */
const EXCEPTION_TYPE = keyBytes('exception.type')
const EXCEPTION_MESSAGE = keyBytes('exception.message')
const EXCEPTION_STACKTRACE = keyBytes('exception.stacktrace')

/** How far clocks of senders may be ahead: the default time of lists ends so long after now (docs/api/logs.md#logs). */
const AHEAD_NANOS = 300_000_000_000n

/**
 * Appends LogRecord messages to the columns of `logs`. One instance serves a batch and nothing is allocated per record.
 * `append` is one long function on purpose. With its locals as fields and a method for each step, in the form of
 * SpanDecoder, decoding logs took 4 to 6 % more CPU.
 */
export class LogDecoder {
  private readonly table: LogsTable
  private readonly attributes: PackedAttributes
  private readonly promoted: PromotedAttributes
  private readonly exceptions: ExceptionDeriver
  private readonly exceptionAttributes: Attributes
  /** Arrival of the payload, in nanoseconds. */
  private receivedLow = 0
  private receivedHigh = 0
  /** The latest time by which records are listed. A later one is that of a wrong clock, and the arrival replaces it. */
  private latestLow = 0
  private latestHigh = 0
  private hasException = false

  constructor(table: LogsTable, attributes: PackedAttributes, exceptions: ExceptionDeriver) {
    this.table = table
    this.attributes = attributes
    this.promoted = new PromotedAttributes(attributes)
    this.exceptionAttributes = new Attributes(table.body)
    this.exceptions = exceptions
  }

  /** Sets the arrival time of the records that follow. */
  beginPayload(source: PayloadSource): void {
    this.promoted.beginPayload()
    const receivedAt = BigInt(source.receivedAtMs) * 1_000_000n
    this.receivedLow = Number(receivedAt & 0xffff_ffffn)
    this.receivedHigh = Number(receivedAt >> 32n)
    const latest = receivedAt + AHEAD_NANOS
    this.latestLow = Number(latest & 0xffff_ffffn)
    this.latestHigh = Number(latest >> 32n)
  }

  /** Forgets the dictionary of key lists, from which rows were removed. */
  clearCache(): void {
    this.attributes.clearCache()
  }

  /** Records of the payload that have a session id over the limit, and are stored without it. */
  get overlongSessionIds(): number {
    return this.promoted.overlongSessionIds
  }

  /**
   * Appends the LogRecord message `[start, end)` as row `row`, for which the fixed-width columns have room. Returns
   * undefined, or the reason why the record is left out. A record that is left out leaves nothing behind.
   */
  append(wire: WireCursor, start: number, end: number, row: number, resource: ResourceEntry): RowRejection | undefined {
    const { bytes, view } = wire
    const { table, attributes } = this
    const bodyMark = table.body.length
    let timeLow = 0
    let timeHigh = 0
    let observedLow = 0
    let observedHigh = 0
    let severity = 0
    let severityText = 0
    let severityTextEnd = 0
    let bodyStart = 0
    let bodyEnd = 0
    let hasBody = false
    let bodyPieces: MessagePieces | undefined
    let dropped = 0
    let flags = 0
    let traceId = 0
    let traceIdLength = 0
    let spanId = 0
    let spanIdLength = 0
    let eventName = 0
    let eventNameEnd = 0
    attributes.begin()
    this.promoted.begin()
    this.hasException = false

    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case ATTRIBUTE_TAG:
          this.look(attributes.append(wire, from, pos))
          break
        case TIME_TAG:
          timeLow = view.getUint32(from, true)
          timeHigh = view.getUint32(from + 4, true)
          break
        case OBSERVED_TIME_TAG:
          observedLow = view.getUint32(from, true)
          observedHigh = view.getUint32(from + 4, true)
          break
        case SEVERITY_NUMBER_TAG:
          severity = wire.low
          break
        case SEVERITY_TEXT_TAG:
          severityText = from
          severityTextEnd = pos
          break
        case BODY_TAG:
          if (hasBody) {
            bodyPieces ??= new MessagePieces(wire, bodyStart, bodyEnd)
            bodyPieces.add(wire, from, pos)
          }
          hasBody = true
          bodyStart = from
          bodyEnd = pos
          break
        case DROPPED_ATTRIBUTES_TAG:
          dropped = wire.low
          break
        case FLAGS_TAG:
          flags = view.getUint32(from, true)
          break
        case TRACE_ID_TAG:
          traceId = from
          traceIdLength = pos - from
          break
        case SPAN_ID_TAG:
          spanId = from
          spanIdLength = pos - from
          break
        case EVENT_NAME_TAG:
          eventName = from
          eventNameEnd = pos
      }
    }
    const body = bodyPieces?.merged() ?? wire
    const bodyType =
      body === wire ? this.appendBody(wire, bodyStart, bodyEnd) : this.appendBody(body, 0, body.bytes.length)

    const rejection = invalidId(traceIdLength, spanIdLength)
    if (rejection !== undefined) {
      attributes.discard()
      table.body.truncate(bodyMark)
      return rejection
    }

    const at8 = row * 8
    const at4 = row * 4
    // An unknown time is 0 (OTLP, LogRecord). The observed time replaces it, or else the arrival.
    let eventLow = timeLow
    let eventHigh = timeHigh
    if (eventLow === 0 && eventHigh === 0) {
      eventLow = observedLow
      eventHigh = observedHigh
      if (eventLow === 0 && eventHigh === 0) {
        eventLow = this.receivedLow
        eventHigh = this.receivedHigh
      }
    }
    const isAhead = eventHigh > this.latestHigh || (eventHigh === this.latestHigh && eventLow > this.latestLow)
    if (isAhead) put64(table.timestamp.view, at8, this.receivedLow, this.receivedHigh)
    else put64(table.timestamp.view, at8, eventLow, eventHigh)
    put64(table.time.view, at8, timeLow, timeHigh)
    put64(table.observedTime.view, at8, observedLow, observedHigh)
    table.severityNumber.bytes[row] = severity <= MAX_SEVERITY_NUMBER ? severity : 0
    table.severityText.string(bytes, view, severityText, severityTextEnd)
    table.bodyType.bytes[row] = bodyType
    table.droppedAttributesCount.view.setUint32(at4, dropped, true)
    table.flags.view.setUint32(at4, flags, true)
    putId(view, traceId, traceIdLength, table.traceId.view, row * 16, 16)
    putId(view, spanId, spanIdLength, table.spanId.view, at8, 8)
    table.eventName.string(bytes, view, eventName, eventNameEnd)
    this.promoted.end(resource.sessionId)
    this.promoted.appendSessionId(table.sessionId)
    if (this.hasException) {
      this.exceptions.note(this.attributesAgain(wire, start, end), eventLow, eventHigh)
      this.deriveException(row, resource)
    }
    attributes.end()
    return undefined
  }

  /** Appends the AnyValue message `[start, end)` as text and returns its type. Nearly every body is only a string. */
  private appendBody(wire: WireCursor, start: number, end: number): number {
    const body = this.table.body
    if (start === end) {
      body.u8(0)
      return ValueType.empty
    }
    if (wire.readField(start, end) === STRING_VALUE_TAG && wire.next === end) {
      body.string(wire.bytes, wire.view, wire.start, end)
      return ValueType.string
    }
    return appendAnyValue(body, wire, start, end)
  }

  /** Remembers the last appended attribute if it has a column or belongs to an exception. The last value counts. */
  private look(keyLength: number): void {
    switch (keyLength) {
      case EXCEPTION_TYPE.byteLength:
        this.noteException(EXCEPTION_TYPE)
        break
      case EXCEPTION_MESSAGE.byteLength:
        this.noteException(EXCEPTION_MESSAGE)
        break
      case EXCEPTION_STACKTRACE.byteLength:
        this.noteException(EXCEPTION_STACKTRACE)
        break
      default:
        this.promoted.look(keyLength)
    }
  }

  /** Marks the record as an exception unless the attribute is empty. */
  private noteException(key: KeyBytes): void {
    const { keys, keyEnd, valueStart, valueEnd } = this.attributes
    if (valueEnd > valueStart && endsWithKey(keys.view, keyEnd, key)) this.hasException = true
  }

  /** Reads the attributes of the record `[start, end)` once more, as those of an exception. */
  private attributesAgain(wire: WireCursor, start: number, end: number): Attributes {
    const { exceptionAttributes } = this
    exceptionAttributes.reset()
    uncounted(wire, () => {
      for (let pos = start; pos < end; ) {
        const tag = wire.readField(pos, end)
        pos = wire.next
        if (tag === ATTRIBUTE_TAG) exceptionAttributes.append(wire, wire.start, pos)
      }
    })
    return exceptionAttributes
  }

  /** Stores the record of row `row` as an occurrence. The ids come from the columns, where absent ids are zero. */
  private deriveException(row: number, resource: ResourceEntry): void {
    const { traceId, spanId } = this.table
    const ids = Buffer.alloc(24)
    traceId.bytes.copy(ids, 0, row * 16, row * 16 + 16)
    spanId.bytes.copy(ids, 16, row * 8, row * 8 + 8)
    this.exceptions.derivePending(ExceptionSource.logRecord, resource, {
      bytes: ids,
      view: new DataView(ids.buffer, ids.byteOffset, ids.length),
      traceIdStart: 0,
      spanIdStart: 16,
      parentSpanIdStart: undefined,
      spanName: '',
      sessionId: this.promoted.sessionId(),
      places: this.attributes.placeTexts(),
    })
  }
}

/** Ids may be absent or zero, which means the same (OTLP, LogRecord). Any other length is invalid. */
function invalidId(traceIdLength: number, spanIdLength: number): RowRejection | undefined {
  if (traceIdLength !== 0 && traceIdLength !== 16) return 'invalid_trace_id'
  if (spanIdLength !== 0 && spanIdLength !== 8) return 'invalid_span_id'
  return undefined
}

/** Copies an id of `size` bytes, or writes zeros if there is no id. */
function putId(source: DataView, from: number, length: number, target: DataView, to: number, size: number): void {
  for (let i = 0; i < size; i += 4) {
    target.setUint32(to + i, length === 0 ? 0 : source.getUint32(from + i, true), true)
  }
}

function put64(target: DataView, at: number, low: number, high: number): void {
  target.setUint32(at, low, true)
  target.setUint32(at + 4, high, true)
}
