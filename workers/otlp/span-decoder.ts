import { ExceptionSource } from '../../clickhouse/exceptions-table.ts'
import type { SpansTable } from '../../clickhouse/spans-table.ts'
import { ValueType } from './any-value.ts'
import type { Attributes } from './attributes.ts'
import {
  cutText,
  type ExceptionDeriver,
  MESSAGE_LIMIT_BYTES,
  NAME_LIMIT_BYTES,
  type OccurrenceContext,
} from './exceptions.ts'
import { INVALID_TAG, type RowRejection, TRUNCATED } from './refusal.ts'
import type { ResourceEntry } from './resource-cache.ts'
import { FIXED32, FIXED64, LENGTH_DELIMITED, VARINT, type WireCursor } from './wire.ts'

const STATUS_ERROR = 2
const MAX_KIND = 5
const MAX_STATUS_CODE = 32_767

const SESSION_ID = Buffer.from('session.id')
const HTTP_ROUTE = Buffer.from('http.route')
const HTTP_STATUS = Buffer.from('http.response.status_code')
const HTTP_STATUS_OLD = Buffer.from('http.status_code')
const EXCEPTION = Buffer.from('exception')

/** Where the attributes of the table's spans, events and links are collected. */
export interface SpanAttributes {
  span: Attributes
  event: Attributes
  link: Attributes
}

/** Appends Span messages to the columns of `spans`. One instance serves a batch; nothing is allocated per span. */
export class SpanDecoder {
  private readonly table: SpansTable
  private readonly attributes: SpanAttributes
  private readonly exceptions: ExceptionDeriver
  /** Text of promoted attributes, as positions in the span attributes' values; empty when the attribute is absent. */
  private sessionStart = 0
  private sessionEnd = 0
  private routeStart = 0
  private routeEnd = 0
  private httpStatus = 0
  private httpStatusOld = 0
  private statusCode = 0
  private messageStart = 0
  private messageEnd = 0
  private hasException = false

  constructor(table: SpansTable, attributes: SpanAttributes, exceptions: ExceptionDeriver) {
    this.table = table
    this.attributes = attributes
    this.exceptions = exceptions
  }

  /**
   * Appends the Span message `[start, end)` as row `row`, for which the fixed-width columns have room. Returns
   * undefined, or why the span is left out; then nothing of it remains.
   */
  append(wire: WireCursor, start: number, end: number, row: number, resource: ResourceEntry): RowRejection | undefined {
    const { bytes, view } = wire
    const table = this.table
    const attributes = this.attributes.span
    const keyMark = attributes.keys.length
    const valueMark = attributes.values.length
    const countMark = attributes.count
    let events = 0
    let links = 0
    let traceId = 0
    let traceIdLength = 0
    let spanId = 0
    let spanIdLength = 0
    let parentId = 0
    let parentIdLength = 0
    let traceState = 0
    let traceStateEnd = 0
    let name = 0
    let nameEnd = 0
    let kind = 0
    let flags = 0
    let startLow = 0
    let startHigh = 0
    let endLow = 0
    let endHigh = 0
    let droppedAttributes = 0
    let droppedEvents = 0
    let droppedLinks = 0
    this.beginSpan()

    for (let pos = start; pos < end; ) {
      let tag = bytes[pos] as number
      if (tag < 0x80) {
        if (tag < 8) throw INVALID_TAG
        pos++
      } else {
        tag = wire.readTag(pos, end)
        pos = wire.next
      }
      switch (tag & 7) {
        case LENGTH_DELIMITED: {
          let length = pos < end ? (bytes[pos] as number) : 0x80
          if (length < 0x80) pos++
          else {
            length = wire.readLength(pos, end)
            pos = wire.next
          }
          const from = pos
          pos += length
          if (pos > end) throw TRUNCATED
          switch (tag >>> 3) {
            case 9:
              this.promote(attributes.append(wire, from, pos))
              break
            case 1:
              traceId = from
              traceIdLength = length
              break
            case 2:
              spanId = from
              spanIdLength = length
              break
            case 3:
              traceState = from
              traceStateEnd = pos
              break
            case 4:
              parentId = from
              parentIdLength = length
              break
            case 5:
              name = from
              nameEnd = pos
              break
            case 11:
              if (events++ === 0) table.events.mark()
              this.appendEvent(wire, from, pos)
              break
            case 13:
              if (links++ === 0) table.links.mark()
              this.appendLink(wire, from, pos)
              break
            case 15:
              this.readStatus(wire, from, pos)
          }
          break
        }
        case VARINT: {
          const value = wire.readVarint(pos, end)
          pos = wire.next
          switch (tag >>> 3) {
            case 6:
              kind = value
              break
            case 10:
              droppedAttributes = value
              break
            case 12:
              droppedEvents = value
              break
            case 14:
              droppedLinks = value
          }
          break
        }
        case FIXED64: {
          if (pos + 8 > end) throw TRUNCATED
          if (tag >>> 3 === 7) {
            startLow = view.getUint32(pos, true)
            startHigh = view.getUint32(pos + 4, true)
          } else if (tag >>> 3 === 8) {
            endLow = view.getUint32(pos, true)
            endHigh = view.getUint32(pos + 4, true)
          }
          pos += 8
          break
        }
        case FIXED32:
          if (pos + 4 > end) throw TRUNCATED
          if (tag >>> 3 === 16) flags = view.getUint32(pos, true)
          pos += 4
          break
        default:
          throw INVALID_TAG
      }
    }

    const rejection = invalidId(view, traceId, traceIdLength, spanId, spanIdLength, parentIdLength)
    if (rejection !== undefined) {
      attributes.keys.truncate(keyMark)
      attributes.values.truncate(valueMark)
      attributes.types.truncate(countMark)
      if (events > 0) table.events.rewind()
      if (links > 0) table.links.rewind()
      this.exceptions.discardPending()
      return rejection
    }

    const at8 = row * 8
    const at4 = row * 4
    copy8(view, traceId, table.traceId.view, row * 16)
    copy8(view, traceId + 8, table.traceId.view, row * 16 + 8)
    copy8(view, spanId, table.spanId.view, at8)
    if (parentIdLength === 8) copy8(view, parentId, table.parentSpanId.view, at8)
    else put64(table.parentSpanId.view, at8, 0, 0)
    table.traceState.string(bytes, view, traceState, traceStateEnd)
    table.flags.view.setUint32(at4, flags, true)
    table.name.string(bytes, view, name, nameEnd)
    table.kind.bytes[row] = kind <= MAX_KIND ? kind : 0
    put64(table.startTime.view, at8, startLow, startHigh)
    put64(table.endTime.view, at8, endLow, endHigh)
    table.statusCode.bytes[row] = this.statusCode
    table.statusMessage.string(bytes, view, this.messageStart, this.messageEnd)
    put64(table.attributeOffsets.view, at8, attributes.count, 0)
    table.droppedAttributesCount.view.setUint32(at4, droppedAttributes, true)
    put64(table.eventOffsets.view, at8, table.events.count, 0)
    table.droppedEventsCount.view.setUint32(at4, droppedEvents, true)
    put64(table.linkOffsets.view, at8, table.links.count, 0)
    table.droppedLinksCount.view.setUint32(at4, droppedLinks, true)
    const values = attributes.values
    table.sessionId.string(values.bytes, values.view, this.sessionStart, this.sessionEnd)
    table.httpRoute.string(values.bytes, values.view, this.routeStart, this.routeEnd)
    table.httpStatusCode.view.setUint16(row * 2, this.httpStatus === 0 ? this.httpStatusOld : this.httpStatus, true)

    if (this.hasException || this.statusCode === STATUS_ERROR) {
      this.deriveExceptions(wire, traceId, spanId, name, nameEnd, endLow, endHigh, resource)
    }
    return undefined
  }

  private beginSpan(): void {
    this.sessionEnd = this.sessionStart = 0
    this.routeEnd = this.routeStart = 0
    this.httpStatus = 0
    this.httpStatusOld = 0
    this.statusCode = 0
    this.messageEnd = this.messageStart = 0
    this.hasException = false
  }

  /** Remembers the attribute just appended if it is one of those that have a column. The last one sent counts. */
  private promote(keyLength: number): void {
    switch (keyLength) {
      case 10: {
        const { keys, values, types, valueStart } = this.attributes.span
        if (endsWith(keys.bytes, keys.length, SESSION_ID)) {
          this.sessionStart = valueStart
          this.sessionEnd = isText(types.bytes[types.length - 1]) ? values.length : valueStart
        } else if (endsWith(keys.bytes, keys.length, HTTP_ROUTE)) {
          this.routeStart = valueStart
          this.routeEnd = isText(types.bytes[types.length - 1]) ? values.length : valueStart
        }
        break
      }
      case 25: {
        const { keys } = this.attributes.span
        if (endsWith(keys.bytes, keys.length, HTTP_STATUS)) this.httpStatus = this.statusOfLast()
        break
      }
      case 16: {
        const { keys } = this.attributes.span
        if (endsWith(keys.bytes, keys.length, HTTP_STATUS_OLD)) this.httpStatusOld = this.statusOfLast()
      }
    }
  }

  /** The attribute just appended as an HTTP status: an int or decimal digits up to 32767, else 0. */
  private statusOfLast(): number {
    const { values, types, valueStart } = this.attributes.span
    const length = values.length - valueStart
    if (!isText(types.bytes[types.length - 1]) || length === 0 || length > 5) return 0
    let status = 0
    for (let i = valueStart; i < values.length; i++) {
      const digit = (values.bytes[i] as number) - 48
      if (digit < 0 || digit > 9) return 0
      status = status * 10 + digit
    }
    return status <= MAX_STATUS_CODE ? status : 0
  }

  /** Status: `string message = 2; StatusCode code = 3`. A second one is merged: what it does not set stays. */
  private readStatus(wire: WireCursor, start: number, end: number): void {
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) {
        this.messageStart = wire.start
        this.messageEnd = pos
      } else if (tag === 0x18) {
        this.statusCode = wire.low <= STATUS_ERROR ? wire.low : 0
      }
    }
  }

  /** Event: `fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; uint32 dropped = 4`. */
  private appendEvent(wire: WireCursor, start: number, end: number): void {
    const columns = this.table.events
    const attributes = this.attributes.event
    const first = { keyStart: attributes.keys.length, valueStart: attributes.values.length, count: attributes.count }
    let name = 0
    let nameEnd = 0
    let timeLow = 0
    let timeHigh = 0
    let dropped = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      switch (tag) {
        case 0x09:
          timeLow = wire.view.getUint32(wire.start, true)
          timeHigh = wire.view.getUint32(wire.start + 4, true)
          break
        case 0x12:
          name = wire.start
          nameEnd = pos
          break
        case 0x1a:
          attributes.append(wire, wire.start, pos)
          break
        case 0x20:
          dropped = wire.low
      }
    }
    columns.time.u64(timeLow, timeHigh)
    columns.name.string(wire.bytes, wire.view, name, nameEnd)
    columns.attributeOffsets.u64(attributes.count, 0)
    columns.droppedAttributesCount.u32(dropped)
    if (nameEnd - name === EXCEPTION.length && endsWith(wire.bytes, nameEnd, EXCEPTION)) {
      this.hasException = true
      this.exceptions.note(attributes, first, timeLow, timeHigh)
    }
  }

  /** Link: `trace_id = 1; span_id = 2; trace_state = 3; attributes = 4; uint32 dropped = 5; fixed32 flags = 6`. */
  private appendLink(wire: WireCursor, start: number, end: number): void {
    const { bytes, view } = wire
    const columns = this.table.links
    const attributes = this.attributes.link
    let traceId = 0
    let traceIdEnd = 0
    let spanId = 0
    let spanIdEnd = 0
    let traceState = 0
    let traceStateEnd = 0
    let dropped = 0
    let flags = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      switch (tag) {
        case 0x0a:
          traceId = wire.start
          traceIdEnd = pos
          break
        case 0x12:
          spanId = wire.start
          spanIdEnd = pos
          break
        case 0x1a:
          traceState = wire.start
          traceStateEnd = pos
          break
        case 0x22:
          attributes.append(wire, wire.start, pos)
          break
        case 0x28:
          dropped = wire.low
          break
        case 0x35:
          flags = view.getUint32(wire.start, true)
      }
    }
    columns.traceId.string(bytes, view, traceId, traceIdEnd)
    columns.spanId.string(bytes, view, spanId, spanIdEnd)
    columns.traceState.string(bytes, view, traceState, traceStateEnd)
    columns.flags.u32(flags)
    columns.attributeOffsets.u64(attributes.count, 0)
    columns.droppedAttributesCount.u32(dropped)
  }

  private deriveExceptions(
    wire: WireCursor,
    traceIdStart: number,
    spanIdStart: number,
    name: number,
    nameEnd: number,
    endLow: number,
    endHigh: number,
    resource: ResourceEntry,
  ): void {
    const { bytes, view } = wire
    const values = this.attributes.span.values
    const context: OccurrenceContext = {
      bytes,
      view,
      traceIdStart,
      spanIdStart,
      spanName: cutText(bytes, name, nameEnd, NAME_LIMIT_BYTES),
      sessionId: cutText(values.bytes, this.sessionStart, this.sessionEnd, NAME_LIMIT_BYTES),
    }
    if (this.hasException) this.exceptions.derivePending(ExceptionSource.spanEvent, resource, context)
    else {
      const message = cutText(bytes, this.messageStart, this.messageEnd, MESSAGE_LIMIT_BYTES)
      this.exceptions.deriveFailure(message, endLow, endHigh, resource, context)
    }
  }
}

function isText(type: number | undefined): boolean {
  return type === ValueType.string || type === ValueType.int
}

function invalidId(
  view: DataView,
  traceId: number,
  traceIdLength: number,
  spanId: number,
  spanIdLength: number,
  parentIdLength: number,
): RowRejection | undefined {
  if (traceIdLength !== 16 || (isZero8(view, traceId) && isZero8(view, traceId + 8))) return 'invalid_trace_id'
  if (spanIdLength !== 8 || isZero8(view, spanId)) return 'invalid_span_id'
  if (parentIdLength !== 0 && parentIdLength !== 8) return 'invalid_parent_span_id'
  return undefined
}

function isZero8(view: DataView, at: number): boolean {
  return view.getUint32(at, true) === 0 && view.getUint32(at + 4, true) === 0
}

function copy8(source: DataView, from: number, target: DataView, to: number): void {
  target.setUint32(to, source.getUint32(from, true), true)
  target.setUint32(to + 4, source.getUint32(from + 4, true), true)
}

function put64(target: DataView, at: number, low: number, high: number): void {
  target.setUint32(at, low, true)
  target.setUint32(at + 4, high, true)
}

/** Whether the bytes before `end` are `text`. */
function endsWith(bytes: Buffer, end: number, text: Buffer): boolean {
  const start = end - text.length
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false
  return true
}
