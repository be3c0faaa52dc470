import { ExceptionSource } from '../../../clickhouse/tables/exceptions-table.ts'
import { SpanDetail } from '../../../clickhouse/tables/span-details.ts'
import type { SpansTable } from '../../../clickhouse/tables/spans-table.ts'
import {
  type ExceptionDeriver,
  MESSAGE_LIMIT_BYTES,
  NAME_LIMIT_BYTES,
  type OccurrenceContext,
} from '../../exceptions/exceptions.ts'
import { cutText } from '../protobuf/cut-text.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'
import { PromotedAttributes } from '../protobuf/promoted-attributes.ts'
import { INVALID_TAG, type RowRejection, TRUNCATED } from '../protobuf/refusal.ts'
import type { ResourceEntry } from '../protobuf/resource-cache.ts'
import { FIXED32, FIXED64, LENGTH_DELIMITED, VARINT, type WireCursor } from '../protobuf/wire.ts'
import { Peers } from './peers.ts'
import { SpanDetailsWriter } from './span-parts.ts'

const STATUS_ERROR = 2
const MAX_KIND = 5

/**
 * Appends Span messages to the columns of `spans`. One instance serves a batch and nothing is allocated per span. The
 * fields of the current span are kept as positions in the payload. V8 keeps these integers unboxed in the fields of
 * this object, which it would not do for the halves of a time.
 */
export class SpanDecoder {
  private readonly table: SpansTable
  private readonly attributes: PackedAttributes
  private readonly exceptions: ExceptionDeriver
  private readonly promoted: PromotedAttributes
  private readonly details: SpanDetailsWriter
  private readonly peers: Peers

  /** Positions. The content of a field is never at position 0, so 0 means that the field is absent. */
  private traceId = 0
  private traceIdLength = 0
  private spanId = 0
  private spanIdLength = 0
  private parentId = 0
  private parentIdLength = 0
  private traceState = 0
  private traceStateEnd = 0
  private name = 0
  private nameEnd = 0
  private message = 0
  private messageEnd = 0
  private startTime = 0
  private endTime = 0
  private flags = 0
  private kind = 0
  private statusCode = 0
  private droppedAttributes = 0
  private droppedEvents = 0
  private droppedLinks = 0
  private hasException = false

  constructor(table: SpansTable, attributes: PackedAttributes, exceptions: ExceptionDeriver) {
    this.table = table
    this.attributes = attributes
    this.exceptions = exceptions
    this.promoted = new PromotedAttributes(attributes)
    this.details = new SpanDetailsWriter(table.details, exceptions)
    this.peers = new Peers(table.peer, attributes)
  }

  /**
   * Appends the Span message `[start, end)` as row `row`, for which the fixed-width columns have room. Returns
   * undefined, or the reason why the span is left out. A span that is left out leaves nothing behind.
   */
  append(wire: WireCursor, start: number, end: number, row: number, resource: ResourceEntry): RowRejection | undefined {
    this.begin()
    this.readFields(wire, start, end)
    const rejection = this.rejection(wire.view)
    if (rejection !== undefined) {
      this.attributes.discard()
      this.details.discard()
      this.exceptions.discardPending()
      return rejection
    }
    this.promoted.end(resource.sessionId)
    this.writeRow(wire, row)
    if (this.hasException || this.statusCode === STATUS_ERROR) this.deriveExceptions(wire, resource)
    this.attributes.end()
    this.peers.append(this.kind)
    return undefined
  }

  /** Begins a payload. */
  beginPayload(): void {
    this.promoted.beginPayload()
    this.details.reset()
  }

  /** Forgets the dictionaries, from which rows were removed. */
  clearCache(): void {
    this.attributes.clearCache()
    this.peers.clearCache()
  }

  /** Spans of the payload that have a session id over the limit, and are stored without it. */
  get overlongSessionIds(): number {
    return this.promoted.overlongSessionIds
  }

  private begin(): void {
    this.traceIdLength = this.spanIdLength = this.parentIdLength = 0
    this.traceState = this.traceStateEnd = 0
    this.name = this.nameEnd = 0
    this.message = this.messageEnd = 0
    this.startTime = this.endTime = 0
    this.flags = 0
    this.kind = 0
    this.statusCode = 0
    this.droppedAttributes = this.droppedEvents = this.droppedLinks = 0
    this.hasException = false
    this.attributes.begin()
    this.promoted.begin()
  }

  /** Reads the fields by wire type. Unknown fields are read too, which skips them. */
  private readFields(wire: WireCursor, start: number, end: number): void {
    const bytes = wire.bytes
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
          if (tag >>> 3 === 9) this.promoted.look(this.attributes.append(wire, from, pos))
          else this.readDelimited(wire, tag >>> 3, from, pos)
          break
        }
        case VARINT: {
          const value = wire.readVarint(pos, end)
          pos = wire.next
          this.readNumber(tag >>> 3, value)
          break
        }
        case FIXED64:
          if (pos + 8 > end) throw TRUNCATED
          if (tag >>> 3 === 7) this.startTime = pos
          else if (tag >>> 3 === 8) this.endTime = pos
          pos += 8
          break
        case FIXED32:
          if (pos + 4 > end) throw TRUNCATED
          if (tag >>> 3 === 16) this.flags = pos
          pos += 4
          break
        default:
          throw INVALID_TAG
      }
    }
  }

  private readDelimited(wire: WireCursor, field: number, start: number, end: number): void {
    switch (field) {
      case 1:
        this.traceId = start
        this.traceIdLength = end - start
        break
      case 2:
        this.spanId = start
        this.spanIdLength = end - start
        break
      case 3:
        this.traceState = start
        this.traceStateEnd = end
        break
      case 4:
        this.parentId = start
        this.parentIdLength = end - start
        break
      case 5:
        this.name = start
        this.nameEnd = end
        break
      case 11:
        if (this.details.event(wire, start, end)) this.hasException = true
        break
      case 13:
        this.details.link(wire, start, end)
        break
      case 15:
        this.readStatus(wire, start, end)
    }
  }

  private readNumber(field: number, value: number): void {
    switch (field) {
      case 6:
        this.kind = value <= MAX_KIND ? value : 0
        break
      case 10:
        this.droppedAttributes = value
        break
      case 12:
        this.droppedEvents = value
        break
      case 14:
        this.droppedLinks = value
    }
  }

  /**
   * Status: `string message = 2; StatusCode code = 3`. A second status is merged and keeps the fields it does not set.
   */
  private readStatus(wire: WireCursor, start: number, end: number): void {
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) {
        this.message = wire.start
        this.messageEnd = pos
      } else if (tag === 0x18) {
        this.statusCode = wire.low <= STATUS_ERROR ? wire.low : 0
      }
    }
  }

  private rejection(view: DataView): RowRejection | undefined {
    if (this.traceIdLength !== 16) return 'invalid_trace_id'
    if (isZero(view, this.traceId) && isZero(view, this.traceId + 8)) return 'invalid_trace_id'
    if (this.spanIdLength !== 8 || isZero(view, this.spanId)) return 'invalid_span_id'
    if (this.parentIdLength !== 0 && this.parentIdLength !== 8) return 'invalid_parent_span_id'
    return undefined
  }

  private writeRow(wire: WireCursor, row: number): void {
    const { bytes, view } = wire
    const { table, details } = this
    const at8 = row * 8
    copy8(view, this.traceId, table.traceId.view, row * 16)
    copy8(view, this.traceId + 8, table.traceId.view, row * 16 + 8)
    copy8(view, this.spanId, table.spanId.view, at8)
    copy8OrZero(view, this.parentIdLength === 8 ? this.parentId : 0, table.parentSpanId.view, at8)
    table.flags.view.setUint32(row * 4, this.flags === 0 ? 0 : view.getUint32(this.flags, true), true)
    table.name.string(bytes, view, this.name, this.nameEnd)
    table.kind.bytes[row] = this.kind
    copy8OrZero(view, this.startTime, table.startTime.view, at8)
    copy8OrZero(view, this.endTime, table.endTime.view, at8)
    table.statusCode.bytes[row] = this.statusCode
    table.statusMessage.string(bytes, view, this.message, this.messageEnd)
    this.promoted.appendSessionId(table.sessionId)
    this.promoted.appendHttpRoute(table.httpRoute)
    table.httpStatusCode.view.setUint16(row * 2, this.promoted.httpStatusCode, true)
    details.traceState(wire, this.traceState, this.traceStateEnd)
    details.dropped(SpanDetail.droppedAttributes, this.droppedAttributes)
    details.dropped(SpanDetail.droppedEvents, this.droppedEvents)
    details.dropped(SpanDetail.droppedLinks, this.droppedLinks)
    details.end()
  }

  private deriveExceptions({ bytes, view }: WireCursor, resource: ResourceEntry): void {
    const context: OccurrenceContext = {
      bytes,
      view,
      traceIdStart: this.traceId,
      spanIdStart: this.spanId,
      parentSpanIdStart: this.parentIdLength === 8 ? this.parentId : undefined,
      spanName: cutText(bytes, this.name, this.nameEnd, NAME_LIMIT_BYTES),
      sessionId: this.promoted.sessionId(),
      places: this.attributes.placeTexts(),
    }
    if (this.hasException) {
      this.exceptions.derivePending(ExceptionSource.spanEvent, resource, context)
      return
    }
    const message = cutText(bytes, this.message, this.messageEnd, MESSAGE_LIMIT_BYTES)
    const low = this.endTime === 0 ? 0 : view.getUint32(this.endTime, true)
    const high = this.endTime === 0 ? 0 : view.getUint32(this.endTime + 4, true)
    this.exceptions.deriveFailure(message, low, high, resource, context)
  }
}

function isZero(view: DataView, at: number): boolean {
  return view.getUint32(at, true) === 0 && view.getUint32(at + 4, true) === 0
}

function copy8(source: DataView, from: number, target: DataView, to: number): void {
  target.setUint32(to, source.getUint32(from, true), true)
  target.setUint32(to + 4, source.getUint32(from + 4, true), true)
}

/** Copies eight bytes, or writes zeros for position 0, which means that the value is absent. */
function copy8OrZero(source: DataView, from: number, target: DataView, to: number): void {
  if (from === 0) {
    target.setUint32(to, 0, true)
    target.setUint32(to + 4, 0, true)
  } else copy8(source, from, target, to)
}
