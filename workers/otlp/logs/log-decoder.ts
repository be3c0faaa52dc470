import { ExceptionSource } from '../../../clickhouse/tables/exceptions-table.ts'
import type { LogsTable } from '../../../clickhouse/tables/logs-table.ts'
import { type ExceptionDeriver, NAME_LIMIT_BYTES } from '../../exceptions/exceptions.ts'
import { appendAnyValue, ValueType } from '../protobuf/any-value.ts'
import type { Attributes } from '../protobuf/attributes.ts'
import { cutText } from '../protobuf/cut-text.ts'
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

const SESSION_ID = Buffer.from('session.id')
/** A record with one of these attributes is an exception (OpenTelemetry semantic conventions, "Exceptions in logs"). */
const EXCEPTION_TYPE = Buffer.from('exception.type')
const EXCEPTION_MESSAGE = Buffer.from('exception.message')
const EXCEPTION_STACKTRACE = Buffer.from('exception.stacktrace')

/**
 * Appends LogRecord messages to the columns of `logs`. One instance serves a batch and nothing is allocated per record.
 * The fields of the current record are kept as positions in the payload, as in SpanDecoder.
 */
export class LogDecoder {
  private readonly table: LogsTable
  private readonly attributes: Attributes
  private readonly exceptions: ExceptionDeriver
  /** Arrival of the payload, in nanoseconds. */
  private receivedLow = 0
  private receivedHigh = 0

  /** Positions. The content of a field is never at position 0, so 0 means that the field is absent. */
  private time = 0
  private observedTime = 0
  private severityText = 0
  private severityTextEnd = 0
  private body = 0
  private bodyEnd = 0
  private bodyPieces: MessagePieces | undefined
  private flags = 0
  private traceId = 0
  private traceIdLength = 0
  private spanId = 0
  private spanIdLength = 0
  private eventName = 0
  private eventNameEnd = 0
  private severity = 0
  private droppedAttributes = 0
  /** Time of the event in nanoseconds. Set only for exceptions, because 64-bit halves are boxed in fields. */
  private eventLow = 0
  private eventHigh = 0
  /** Text of the promoted attribute, as positions in the values of the attributes; empty when it is absent. */
  private sessionStart = 0
  private sessionEnd = 0
  private hasException = false

  constructor(table: LogsTable, attributes: Attributes, exceptions: ExceptionDeriver) {
    this.table = table
    this.attributes = attributes
    this.exceptions = exceptions
  }

  /** Sets the arrival time of the records that follow. */
  beginPayload(source: PayloadSource): void {
    const receivedAt = BigInt(source.receivedAtMs) * 1_000_000n
    this.receivedLow = Number(receivedAt & 0xffff_ffffn)
    this.receivedHigh = Number(receivedAt >> 32n)
  }

  /**
   * Appends the LogRecord message `[start, end)` as row `row`, for which the fixed-width columns have room. Returns
   * undefined, or the reason why the record is left out. A record that is left out leaves nothing behind.
   */
  append(wire: WireCursor, start: number, end: number, row: number, resource: ResourceEntry): RowRejection | undefined {
    const { table, attributes } = this
    const keyStart = attributes.keys.length
    const valueStart = attributes.values.length
    const count = attributes.count
    const bodyMark = table.body.length
    this.begin()
    this.readFields(wire, start, end)
    const bodyType =
      this.bodyPieces === undefined
        ? this.appendBody(wire, this.body, this.bodyEnd)
        : this.appendMerged(this.bodyPieces)
    const rejection = invalidId(this.traceIdLength, this.spanIdLength)
    if (rejection !== undefined) {
      attributes.keys.truncate(keyStart)
      attributes.values.truncate(valueStart)
      attributes.types.truncate(count)
      table.body.truncate(bodyMark)
      return rejection
    }
    this.writeTimes(wire.view, row)
    this.writeRow(wire, row, bodyType)
    if (this.hasException) {
      this.exceptions.note(attributes, { keyStart, valueStart, count }, this.eventLow, this.eventHigh)
      this.deriveException(row, resource)
    }
    return undefined
  }

  private begin(): void {
    this.time = this.observedTime = 0
    this.severityText = this.severityTextEnd = 0
    this.body = this.bodyEnd = 0
    this.bodyPieces = undefined
    this.flags = 0
    this.traceId = this.traceIdLength = 0
    this.spanId = this.spanIdLength = 0
    this.eventName = this.eventNameEnd = 0
    this.severity = 0
    this.droppedAttributes = 0
    this.sessionStart = this.sessionEnd = 0
    this.hasException = false
  }

  /** Reads the fields by their whole tag. `readField` has already skipped the content of unknown fields. */
  private readFields(wire: WireCursor, start: number, end: number): void {
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case ATTRIBUTE_TAG:
          this.promote(this.attributes.append(wire, from, pos))
          break
        case TIME_TAG:
          this.time = from
          break
        case OBSERVED_TIME_TAG:
          this.observedTime = from
          break
        case SEVERITY_NUMBER_TAG:
          this.severity = wire.low
          break
        case SEVERITY_TEXT_TAG:
          this.severityText = from
          this.severityTextEnd = pos
          break
        case BODY_TAG:
          this.readBody(wire, from, pos)
          break
        case DROPPED_ATTRIBUTES_TAG:
          this.droppedAttributes = wire.low
          break
        case FLAGS_TAG:
          this.flags = from
          break
        case TRACE_ID_TAG:
          this.traceId = from
          this.traceIdLength = pos - from
          break
        case SPAN_ID_TAG:
          this.spanId = from
          this.spanIdLength = pos - from
          break
        case EVENT_NAME_TAG:
          this.eventName = from
          this.eventNameEnd = pos
      }
    }
  }

  /** Remembers the body. Several bodies are pieces of one message. */
  private readBody(wire: WireCursor, start: number, end: number): void {
    if (this.body !== 0) {
      this.bodyPieces ??= new MessagePieces(wire, this.body, this.bodyEnd)
      this.bodyPieces.add(wire, start, end)
    }
    this.body = start
    this.bodyEnd = end
  }

  /** Writes the times. An unknown time is 0 (OTLP, LogRecord); the observed time replaces it, or else the arrival. */
  private writeTimes(view: DataView, row: number): void {
    const { table } = this
    const at8 = row * 8
    const { time, observedTime } = this
    const timeLow = time === 0 ? 0 : view.getUint32(time, true)
    const timeHigh = time === 0 ? 0 : view.getUint32(time + 4, true)
    const observedLow = observedTime === 0 ? 0 : view.getUint32(observedTime, true)
    const observedHigh = observedTime === 0 ? 0 : view.getUint32(observedTime + 4, true)
    put64(table.time.view, at8, timeLow, timeHigh)
    put64(table.observedTime.view, at8, observedLow, observedHigh)
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
    if (this.hasException) {
      this.eventLow = eventLow
      this.eventHigh = eventHigh
    }
    // DateTime64 is signed: times after 2262 are stored as its maximum.
    if (eventHigh < 0x8000_0000) put64(table.timestamp.view, at8, eventLow, eventHigh)
    else put64(table.timestamp.view, at8, 0xffff_ffff, 0x7fff_ffff)
  }

  private writeRow({ bytes, view }: WireCursor, row: number, bodyType: number): void {
    const { table, attributes } = this
    const at8 = row * 8
    const at4 = row * 4
    table.severityNumber.bytes[row] = this.severity <= MAX_SEVERITY_NUMBER ? this.severity : 0
    table.severityText.string(bytes, view, this.severityText, this.severityTextEnd)
    table.bodyType.bytes[row] = bodyType
    put64(table.attributeOffsets.view, at8, attributes.count, 0)
    table.droppedAttributesCount.view.setUint32(at4, this.droppedAttributes, true)
    table.flags.view.setUint32(at4, this.flags === 0 ? 0 : view.getUint32(this.flags, true), true)
    putId(view, this.traceId, this.traceIdLength, table.traceId.view, row * 16, 16)
    putId(view, this.spanId, this.spanIdLength, table.spanId.view, at8, 8)
    table.eventName.string(bytes, view, this.eventName, this.eventNameEnd)
    const { values } = attributes
    table.sessionId.string(values.bytes, values.view, this.sessionStart, this.sessionEnd)
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

  private appendMerged(pieces: MessagePieces): number {
    const merged = pieces.merged()
    return this.appendBody(merged, 0, merged.bytes.length)
  }

  /** Remembers the last appended attribute if it has a column or belongs to an exception. The last value counts. */
  private promote(keyLength: number): void {
    switch (keyLength) {
      case SESSION_ID.length: {
        const { keys, values, types, valueStart } = this.attributes
        if (endsWith(keys.bytes, keys.length, SESSION_ID)) {
          this.sessionStart = valueStart
          this.sessionEnd = isText(types.bytes[types.length - 1]) ? values.length : valueStart
        }
        break
      }
      case EXCEPTION_TYPE.length:
        this.noteException(EXCEPTION_TYPE)
        break
      case EXCEPTION_MESSAGE.length:
        this.noteException(EXCEPTION_MESSAGE)
        break
      case EXCEPTION_STACKTRACE.length:
        this.noteException(EXCEPTION_STACKTRACE)
    }
  }

  /** Marks the record as an exception unless the attribute is empty. */
  private noteException(key: Buffer): void {
    const { keys, values, valueStart } = this.attributes
    if (values.length > valueStart && endsWith(keys.bytes, keys.length, key)) this.hasException = true
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
      spanName: '',
      sessionId: cutText(this.attributes.values.bytes, this.sessionStart, this.sessionEnd, NAME_LIMIT_BYTES),
    })
  }
}

function isText(type: number | undefined): boolean {
  return type === ValueType.string || type === ValueType.int
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

/** Returns whether the bytes before `end` are `text`. */
function endsWith(bytes: Buffer, end: number, text: Buffer): boolean {
  const start = end - text.length
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false
  return true
}
