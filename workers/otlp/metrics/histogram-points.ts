import { GrowingBuffer, MAX_LENGTH_BYTES } from '../../../clickhouse/native/growing-buffer.ts'
import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import { PointDetail } from '../../../clickhouse/tables/point-details.ts'
import type { RowRejection } from '../protobuf/refusal.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendPacked64, appendPackedVarints } from '../protobuf/wire-columns.ts'
import type { PointWriter } from './point-writer.ts'

/** Bytes before the buckets of an exponential histogram (clickhouse/migrations/0004_metrics.sql). */
const BUCKETS_AT = 24

/** Appends the points of both kinds of histograms. Buckets are copied to the columns while they are read. */
export class HistogramPointDecoder {
  private readonly table: MetricPointsTable
  private readonly writer: PointWriter
  /** Counts of the buckets of negative values, which follow the others however a message orders them. */
  private readonly negative = new GrowingBuffer()

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
    const boundsAt = bounds.beginString()
    const countsAt = counts.beginString()
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
        case 0x31:
        case 0x32:
          appendPacked64(counts, wire, from, pos)
          break
        case 0x39:
        case 0x3a:
          appendPacked64(bounds, wire, from, pos)
          break
        case 0x42:
          writer.details.appendExemplar(wire, from, pos)
          break
        case 0x4a:
          writer.appendAttribute(wire, from, pos)
          break
        case 0x50:
          flags = wire.low
          break
        case 0x59:
          writer.details.appendNumber(PointDetail.min, wire, from)
          break
        case 0x61:
          writer.details.appendNumber(PointDetail.max, wire, from)
      }
    }
    const countBytes = counts.length - countsAt
    if (countBytes > MAX_LENGTH_BYTES && countBytes !== bounds.length - boundsAt + 8) {
      counts.truncate(countsAt)
      bounds.truncate(boundsAt)
      writer.discardPoint()
      return 'invalid_bucket_counts'
    }
    bounds.endString(boundsAt)
    counts.endString(countsAt)
    histogram.rows = row + 1
    writer.appendDistribution(view, row, count, sum)
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
    const { values } = exponential
    const valuesAt = values.beginString()
    values.fillBytes(0, BUCKETS_AT)
    const { negative } = this
    negative.reset()
    negative.budget = values.budget
    let startTime = ABSENT
    let time = ABSENT
    let count = ABSENT
    let sum = ABSENT
    let scale = 0
    let zeroCount = ABSENT
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
          positiveOffset = appendBuckets(values, wire, from, pos, positiveOffset)
          break
        case 0x4a:
          negativeOffset = appendBuckets(negative, wire, from, pos, negativeOffset)
          break
        case 0x50:
          flags = wire.low
          break
        case 0x5a:
          writer.details.appendExemplar(wire, from, pos)
          break
        case 0x61:
          writer.details.appendNumber(PointDetail.min, wire, from)
          break
        case 0x69:
          writer.details.appendNumber(PointDetail.max, wire, from)
          break
        case 0x71:
          writer.details.appendNumber(PointDetail.zeroThreshold, wire, from)
      }
    }
    const header = valuesAt + MAX_LENGTH_BYTES
    const positiveCounts = (values.length - header - BUCKETS_AT) / 8
    values.view.setInt32(header, scale, true)
    values.view.setInt32(header + 4, positiveOffset, true)
    values.view.setInt32(header + 8, negativeOffset, true)
    values.view.setUint32(header + 12, positiveCounts, true)
    if (zeroCount !== ABSENT) wire.bytes.copy(values.bytes, header + 16, zeroCount, zeroCount + 8)
    values.raw(negative.bytes, negative.view, 0, negative.length)
    values.endString(valuesAt)
    exponential.rows = row + 1
    writer.appendDistribution(view, row, count, sum)
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
