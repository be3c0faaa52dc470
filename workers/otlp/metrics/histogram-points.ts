import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import type { RowRejection } from '../protobuf/refusal.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64, appendPacked64, appendPackedVarints } from '../protobuf/wire-columns.ts'
import type { PointWriter } from './point-writer.ts'

/** Appends the points of both kinds of histograms. Array values are copied to the columns while they are read. */
export class HistogramPointDecoder {
  private readonly table: MetricPointsTable
  private readonly writer: PointWriter

  constructor(table: MetricPointsTable, writer: PointWriter) {
    this.table = table
    this.writer = writer
  }

  /**
   * HistogramDataPoint: `start = 2; time = 3; fixed64 count = 4; optional double sum = 5; repeated fixed64
   * bucket_counts = 6; repeated double explicit_bounds = 7; exemplars = 8; attributes = 9; flags = 10; optional double
   * min = 11; max = 12`.
   */
  append(wire: WireCursor, start: number, end: number): RowRejection | undefined {
    const { view } = wire
    const { writer } = this
    const { buffer, histogram } = this.table
    const row = buffer.rows
    histogram.fillTo(row)
    const { bounds, counts } = histogram
    const { keys, values, types } = writer.attributes
    const keyMark = keys.length
    const valueMark = values.length
    const typeMark = types.length
    const boundMark = bounds.length
    const countMark = counts.length
    let startTime = ABSENT
    let time = ABSENT
    let count = ABSENT
    let sum = ABSENT
    let min = ABSENT
    let max = ABSENT
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
        case 0x31:
        case 0x32:
          appendPacked64(counts, wire, from, pos)
          break
        case 0x39:
        case 0x3a:
          appendPacked64(bounds, wire, from, pos)
          break
        case 0x42:
          writer.exemplars.append(wire, from, pos, row)
          break
        case 0x4a:
          writer.appendAttribute(wire, from, pos)
          break
        case 0x50:
          flags = wire.low
          break
        case 0x59:
          min = from
          break
        case 0x61:
          max = from
      }
    }
    if (counts.length > countMark && counts.length - countMark !== bounds.length - boundMark + 8) {
      counts.truncate(countMark)
      bounds.truncate(boundMark)
      keys.truncate(keyMark)
      values.truncate(valueMark)
      types.truncate(typeMark)
      writer.exemplars.discardPoint()
      return 'invalid_bucket_counts'
    }
    histogram.boundOffsets.u64(bounds.length / 8, 0)
    histogram.countOffsets.u64(counts.length / 8, 0)
    histogram.rows = row + 1
    writer.appendDistribution(view, row, count, sum, min, max)
    writer.endPoint(view, startTime, time, flags)
    return undefined
  }

  /**
   * ExponentialHistogramDataPoint: `attributes = 1; start = 2; time = 3; fixed64 count = 4; optional double sum = 5;
   * sint32 scale = 6; fixed64 zero_count = 7; Buckets positive = 8; Buckets negative = 9; flags = 10; exemplars = 11;
   * optional double min = 12; max = 13; double zero_threshold = 14`.
   */
  appendExponential(wire: WireCursor, start: number, end: number): undefined {
    const { view } = wire
    const { writer } = this
    const { buffer, exponential } = this.table
    const row = buffer.rows
    exponential.fillTo(row)
    let startTime = ABSENT
    let time = ABSENT
    let count = ABSENT
    let sum = ABSENT
    let min = ABSENT
    let max = ABSENT
    let scale = 0
    let zeroCount = ABSENT
    let zeroThreshold = ABSENT
    let positiveOffset = 0
    let negativeOffset = 0
    let flags = 0
    writer.beginPoint()
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case 0x0a:
          writer.appendAttribute(wire, from, pos)
          break
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
        case 0x30:
          scale = fromZigzag(wire.low)
          break
        case 0x39:
          zeroCount = from
          break
        case 0x42:
          positiveOffset = appendBuckets(exponential.positiveCounts, wire, from, pos, positiveOffset)
          break
        case 0x4a:
          negativeOffset = appendBuckets(exponential.negativeCounts, wire, from, pos, negativeOffset)
          break
        case 0x50:
          flags = wire.low
          break
        case 0x5a:
          writer.exemplars.append(wire, from, pos, row)
          break
        case 0x61:
          min = from
          break
        case 0x69:
          max = from
          break
        case 0x71:
          zeroThreshold = from
      }
    }
    exponential.scale.u32(scale)
    appendFixed64(exponential.zeroCount, view, zeroCount)
    appendFixed64(exponential.zeroThreshold, view, zeroThreshold)
    exponential.positiveOffset.u32(positiveOffset)
    exponential.positiveOffsets.u64(exponential.positiveCounts.length / 8, 0)
    exponential.negativeOffset.u32(negativeOffset)
    exponential.negativeOffsets.u64(exponential.negativeCounts.length / 8, 0)
    exponential.rows = row + 1
    writer.appendDistribution(view, row, count, sum, min, max)
    writer.endPoint(view, startTime, time, flags)
    return undefined
  }
}

/**
 * Buckets: `sint32 offset = 1; repeated uint64 bucket_counts = 2`. Several messages are merged, so their counts are
 * concatenated.
 */
function appendBuckets(counts: GrowingBuffer, wire: WireCursor, start: number, end: number, offset: number): number {
  let last = offset
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    pos = wire.next
    if (tag === 0x08) last = fromZigzag(wire.low)
    else if (tag === 0x10) counts.u64(wire.low, wire.high)
    else if (tag === 0x12) appendPackedVarints(counts, wire, wire.start, pos)
  }
  return last
}

function fromZigzag(value: number): number {
  return (value >>> 1) ^ -(value & 1)
}
