import type { EventColumns, LinkColumns } from '../../../clickhouse/tables/spans-table.ts'
import type { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import type { Attributes } from '../protobuf/attributes.ts'
import { endsWithKey, keyBytes } from '../protobuf/key-bytes.ts'
import type { WireCursor } from '../protobuf/wire.ts'

const EXCEPTION = keyBytes('exception')

/** Appends Event messages to the columns of events and notes exceptions. */
export class EventDecoder {
  private readonly columns: EventColumns
  private readonly attributes: Attributes
  private readonly exceptions: ExceptionDeriver

  constructor(columns: EventColumns, attributes: Attributes, exceptions: ExceptionDeriver) {
    this.columns = columns
    this.attributes = attributes
    this.exceptions = exceptions
  }

  /**
   * Event: `fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; uint32 dropped = 4`.
   * Returns whether the event is an exception.
   */
  append(wire: WireCursor, start: number, end: number): boolean {
    const { columns, attributes } = this
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
    const isException = nameEnd - name === EXCEPTION.byteLength && endsWithKey(wire.view, nameEnd, EXCEPTION)
    if (isException) this.exceptions.note(attributes, first, timeLow, timeHigh)
    return isException
  }
}

/** Appends Link messages to the columns of links. */
export class LinkDecoder {
  private readonly columns: LinkColumns
  private readonly attributes: Attributes

  constructor(columns: LinkColumns, attributes: Attributes) {
    this.columns = columns
    this.attributes = attributes
  }

  /** Link: `trace_id = 1; span_id = 2; trace_state = 3; attributes = 4; uint32 dropped = 5; fixed32 flags = 6`. */
  append(wire: WireCursor, start: number, end: number): void {
    const { bytes, view } = wire
    const { columns, attributes } = this
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
}
