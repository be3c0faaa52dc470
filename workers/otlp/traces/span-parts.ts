import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { SpanDetail } from '../../../clickhouse/tables/span-details.ts'
import type { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { endsWithKey, keyBytes } from '../protobuf/key-bytes.ts'
import type { WireCursor } from '../protobuf/wire.ts'

const EXCEPTION = keyBytes('exception')

/** Writes events, links and other rare fields of spans to the column `details`. */
export class SpanDetailsWriter {
  private readonly target: GrowingBuffer
  private readonly exceptions: ExceptionDeriver
  /** Attributes of one event or link. */
  private readonly attributes: Attributes
  /** Start of the value of the span, or -1 while it has none. */
  private valueStart = -1

  constructor(target: GrowingBuffer, exceptions: ExceptionDeriver) {
    this.target = target
    this.attributes = new Attributes(target)
    this.exceptions = exceptions
  }

  /** Ends the value of a span. */
  end(): void {
    if (this.valueStart < 0) this.target.u8(0)
    else this.target.endString(this.valueStart)
    this.valueStart = -1
  }

  /** Removes the value of a rejected span. */
  discard(): void {
    if (this.valueStart >= 0) this.target.truncate(this.valueStart)
    this.valueStart = -1
  }

  /** Forgets the span of a refused payload, whose rows are removed. */
  reset(): void {
    this.valueStart = -1
    this.attributes.reset()
  }

  traceState({ bytes, view }: WireCursor, start: number, end: number): void {
    if (start === end) return
    this.begin(SpanDetail.traceState)
    this.target.string(bytes, view, start, end)
  }

  /** Notes how many items the sender has left out. */
  dropped(entry: number, count: number): void {
    if (count === 0) return
    this.begin(entry)
    this.target.u32(count)
  }

  /**
   * Event: `fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; uint32 dropped = 4`.
   * Notes exceptions. Returns whether the event is one.
   */
  event(wire: WireCursor, start: number, end: number): boolean {
    const { attributes, target } = this
    let name = 0
    let nameEnd = 0
    let timeLow = 0
    let timeHigh = 0
    let dropped = 0
    attributes.reset()
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
    this.begin(SpanDetail.event)
    target.u64(timeLow, timeHigh)
    target.u32(dropped)
    target.string(wire.bytes, wire.view, name, nameEnd)
    this.writeAttributes()
    const isException = nameEnd - name === EXCEPTION.byteLength && endsWithKey(wire.view, nameEnd, EXCEPTION)
    if (isException) this.exceptions.note(attributes, timeLow, timeHigh)
    return isException
  }

  /** Link: `trace_id = 1; span_id = 2; trace_state = 3; attributes = 4; uint32 dropped = 5; fixed32 flags = 6`. */
  link(wire: WireCursor, start: number, end: number): void {
    const { bytes, view } = wire
    const { attributes, target } = this
    let traceId = 0
    let traceIdEnd = 0
    let spanId = 0
    let spanIdEnd = 0
    let traceState = 0
    let traceStateEnd = 0
    let dropped = 0
    let flags = 0
    attributes.reset()
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
    this.begin(SpanDetail.link)
    target.u32(flags)
    target.u32(dropped)
    target.string(bytes, view, traceId, traceIdEnd)
    target.string(bytes, view, spanId, spanIdEnd)
    target.string(bytes, view, traceState, traceStateEnd)
    this.writeAttributes()
  }

  private begin(entry: number): void {
    if (this.valueStart < 0) this.valueStart = this.target.beginString()
    this.target.u8(entry)
  }

  private writeAttributes(): void {
    const { target, attributes } = this
    target.varint(attributes.count)
    for (const { bytes, view, length } of [attributes.types, attributes.keys, attributes.values]) {
      target.raw(bytes, view, 0, length)
    }
  }
}
