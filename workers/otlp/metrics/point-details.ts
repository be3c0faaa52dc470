import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { type MetricPointsTable, NumberType } from '../../../clickhouse/tables/metric-points-table.ts'
import { PointDetail } from '../../../clickhouse/tables/point-details.ts'
import { Attributes } from '../protobuf/attributes.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64 } from '../protobuf/wire-columns.ts'

/** Writes the column `details` of points (clickhouse/tables/point-details.ts). */
export class PointDetails {
  private readonly table: MetricPointsTable
  private readonly attributes: Attributes
  /** Whether the point has entries, and where they begin. */
  private hasEntries = false
  private start = 0

  constructor(table: MetricPointsTable) {
    this.table = table
    this.attributes = new Attributes(table.details.values)
  }

  beginPoint(): void {
    this.hasEntries = false
  }

  /** Appends an entry of one number, which is at `from` in the message. */
  appendNumber(entry: PointDetail, { view }: WireCursor, from: number): void {
    appendFixed64(this.begin(entry), view, from)
  }

  /** ValueAtQuantile: `double quantile = 1; double value = 2`. */
  appendQuantile(wire: WireCursor, start: number, end: number): void {
    let quantile = ABSENT
    let value = ABSENT
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x09) quantile = wire.start
      else if (tag === 0x11) value = wire.start
    }
    const target = this.begin(PointDetail.quantile)
    appendFixed64(target, wire.view, quantile)
    appendFixed64(target, wire.view, value)
  }

  /**
   * Exemplar: `fixed64 time_unix_nano = 2; oneof { double as_double = 3; sfixed64 as_int = 6 } bytes span_id = 4;
   * bytes trace_id = 5; filtered_attributes = 7`. Ids of any length are stored as sent, as in span links.
   */
  appendExemplar(wire: WireCursor, start: number, end: number): void {
    const { attributes } = this
    const { bytes, view } = wire
    let time = ABSENT
    let value = ABSENT
    let type: number = NumberType.none
    let spanId = 0
    let spanIdEnd = 0
    let traceId = 0
    let traceIdEnd = 0
    attributes.reset()
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case 0x11:
          time = from
          break
        case 0x19:
          value = from
          type = NumberType.double
          break
        case 0x31:
          value = from
          type = NumberType.int
          break
        case 0x22:
          spanId = from
          spanIdEnd = pos
          break
        case 0x2a:
          traceId = from
          traceIdEnd = pos
          break
        case 0x3a:
          attributes.append(wire, from, pos)
      }
    }
    const target = this.begin(PointDetail.exemplar)
    target.u8(type)
    appendFixed64(target, view, value)
    appendFixed64(target, view, time)
    target.string(bytes, view, spanId, spanIdEnd)
    target.string(bytes, view, traceId, traceIdEnd)
    attributes.writeTo(target)
  }

  /** Completes the row. Without entries `fillTo` writes it later. */
  endPoint(): void {
    if (!this.hasEntries) return
    const { details, buffer } = this.table
    details.values.endString(this.start)
    details.rows = buffer.rows + 1
  }

  /** Removes the entries of a rejected point. */
  discardPoint(): void {
    if (this.hasEntries) this.table.details.values.truncate(this.start)
  }

  private begin(entry: PointDetail): GrowingBuffer {
    const { details, buffer } = this.table
    if (!this.hasEntries) {
      details.fillTo(buffer.rows)
      this.start = details.values.beginString()
      this.hasEntries = true
    }
    details.values.u8(entry)
    return details.values
  }
}
