import { type MetricPointsTable, NumberType } from '../../../clickhouse/tables/metric-points-table.ts'
import type { Attributes } from '../protobuf/attributes.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64 } from '../protobuf/wire-columns.ts'

/** Appends the exemplars of data points. Ids of any length are stored as sent, as in span links. */
export class ExemplarDecoder {
  private readonly columns: MetricPointsTable['exemplars']
  private readonly attributes: Attributes
  private count = 0

  constructor(table: MetricPointsTable, attributes: Attributes) {
    this.columns = table.exemplars
    this.attributes = attributes
  }

  beginPoint(): void {
    this.count = 0
  }

  /**
   * Exemplar: `fixed64 time_unix_nano = 2; oneof { double as_double = 3; sfixed64 as_int = 6 } bytes span_id = 4;
   * bytes trace_id = 5; filtered_attributes = 7`.
   */
  append(wire: WireCursor, start: number, end: number, row: number): void {
    const { columns, attributes } = this
    const { bytes, view } = wire
    if (this.count++ === 0) {
      columns.fillTo(row)
      columns.mark()
    }
    let time = ABSENT
    let value = ABSENT
    let type: number = NumberType.none
    let spanId = 0
    let spanIdEnd = 0
    let traceId = 0
    let traceIdEnd = 0
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
    appendFixed64(columns.time, view, time)
    columns.type.u8(type)
    appendFixed64(columns.asInt, view, type === NumberType.int ? value : ABSENT)
    appendFixed64(columns.asDouble, view, type === NumberType.double ? value : ABSENT)
    columns.spanId.string(bytes, view, spanId, spanIdEnd)
    columns.traceId.string(bytes, view, traceId, traceIdEnd)
    columns.attributeOffsets.u64(attributes.count, 0)
  }

  /** Ends the point of row `row`. Without exemplars `fillTo` writes it later. */
  endPoint(row: number): void {
    if (this.count === 0) return
    this.columns.offsets.u64(this.columns.type.length, 0)
    this.columns.rows = row + 1
  }

  /** Removes the exemplars of a rejected point. */
  discardPoint(): void {
    if (this.count > 0) this.columns.rewind()
  }
}
