import { type MetricPointsTable, NumberType } from '../../../clickhouse/tables/metric-points-table.ts'
import { TRUNCATED } from '../protobuf/refusal.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64 } from '../protobuf/wire-columns.ts'
import type { PointWriter } from './point-writer.ts'

/**
 * Appends the points of gauges and sums. Only the position of a fixed-width field is kept: the last one counts and is
 * copied at the end. Cases are whole tags, so a field with another wire type is an unknown field.
 */
export class NumberPointDecoder {
  private readonly table: MetricPointsTable
  private readonly writer: PointWriter

  constructor(table: MetricPointsTable, writer: PointWriter) {
    this.table = table
    this.writer = writer
  }

  /**
   * NumberDataPoint: `start_time_unix_nano = 2; time_unix_nano = 3; oneof { double as_double = 4; sfixed64 as_int = 6 }
   * exemplars = 5; attributes = 7; uint32 flags = 8`.
   */
  append(wire: WireCursor, start: number, end: number): undefined {
    const { bytes, view } = wire
    const { writer } = this
    const row = this.table.buffer.rows
    let startTime = ABSENT
    let time = ABSENT
    let value = ABSENT
    let type: number = NumberType.none
    let flags = 0
    writer.beginPoint()
    for (let pos = start; pos < end; ) {
      const fieldStart = pos
      let tag = bytes[pos] as number
      if (tag < 0x80) pos++
      else {
        tag = wire.readTag(pos, end)
        pos = wire.next
      }
      switch (tag) {
        case 0x3a: {
          const length = wire.readLength(pos, end)
          const from = wire.next
          pos = from + length
          writer.appendAttribute(wire, from, pos)
          break
        }
        case 0x11:
          startTime = pos
          pos += 8
          break
        case 0x19:
          time = pos
          pos += 8
          break
        case 0x21:
          value = pos
          type = NumberType.double
          pos += 8
          break
        case 0x31:
          value = pos
          type = NumberType.int
          pos += 8
          break
        case 0x2a: {
          const length = wire.readLength(pos, end)
          const from = wire.next
          pos = from + length
          writer.details.appendExemplar(wire, from, pos)
          break
        }
        case 0x40:
          flags = wire.readVarint(pos, end)
          pos = wire.next
          break
        default:
          wire.readField(fieldStart, end)
          pos = wire.next
      }
      if (pos > end) throw TRUNCATED
    }
    const { numbers } = this.table
    if (numbers.rows < row) numbers.fillTo(row)
    numbers.type.u8(type)
    appendFixed64(numbers.asInt, view, type === NumberType.int ? value : ABSENT)
    appendFixed64(numbers.asDouble, view, type === NumberType.double ? value : ABSENT)
    numbers.rows = row + 1
    writer.endPoint(view, startTime, time, flags)
    return undefined
  }
}
