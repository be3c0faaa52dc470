import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT } from '../protobuf/wire-columns.ts'
import type { PointWriter } from './point-writer.ts'

/** Appends the points of summaries. */
export class SummaryPointDecoder {
  private readonly table: MetricPointsTable
  private readonly writer: PointWriter

  constructor(table: MetricPointsTable, writer: PointWriter) {
    this.table = table
    this.writer = writer
  }

  /**
   * SummaryDataPoint: `start = 2; time = 3; fixed64 count = 4; double sum = 5; quantile_values = 6; attributes = 7;
   * flags = 8`. A missing sum is 0, because the field is not optional.
   */
  append(wire: WireCursor, start: number, end: number): undefined {
    const { view } = wire
    const { writer } = this
    const { buffer, distribution } = this.table
    const row = buffer.rows
    let startTime = ABSENT
    let time = ABSENT
    let count = ABSENT
    let sum = ABSENT
    let flags = 0
    writer.beginPoint()
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case 0x11:
          startTime = from
          break
        case 0x19:
          time = from
          break
        case 0x21:
          count = from
          break
        case 0x29:
          sum = from
          break
        case 0x32:
          writer.details.appendQuantile(wire, from, pos)
          break
        case 0x3a:
          writer.appendAttribute(wire, from, pos)
          break
        case 0x40:
          flags = wire.low
      }
    }
    writer.appendDistribution(view, row, count, sum)
    distribution.sumIsNull.bytes[row] = 0
    writer.endPoint(view, startTime, time, flags)
    return undefined
  }
}
