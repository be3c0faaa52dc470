import { type MetricPointsTable, NumberType } from '../../clickhouse/metric-points-table.ts'
import type { GrowingBuffer } from '../../clickhouse/native/growing-buffer.ts'
import type { Attributes } from './attributes.ts'
import { ExemplarDecoder } from './exemplars.ts'
import { type RowRejection, TRUNCATED } from './refusal.ts'
import { AttributeSetHash, Hash64 } from './series-id.ts'
import type { WireCursor } from './wire.ts'
import { ABSENT, appendFixed64, appendPacked64, appendPackedVarints } from './wire-columns.ts'

/** Where the attributes of points and of their exemplars are collected. */
export interface PointAttributes {
  point: Attributes
  exemplar: Attributes
}

/**
 * Appends data points to the columns of `metric_points`. One instance serves a batch; nothing is allocated per point.
 * Of a field of fixed width only its position is remembered: the last one sent counts, and is copied at the end.
 * Tags are of one byte; a switch over them tells wire types apart, too, and leaves what else there is to `readField`.
 */
export class DataPointDecoder {
  private readonly table: MetricPointsTable
  private readonly attributes: Attributes
  private readonly exemplars: ExemplarDecoder
  private readonly metric = new Hash64()
  private readonly series = new Hash64()
  private readonly attributeSet = new AttributeSetHash()

  constructor(table: MetricPointsTable, attributes: PointAttributes) {
    this.table = table
    this.attributes = attributes.point
    this.exemplars = new ExemplarDecoder(table, attributes.exemplar)
  }

  /** Begins the points of a Metric; its hash tells it from all others, of other resources and scopes too. */
  beginMetric(identity: Hash64): void {
    this.metric.low = identity.low
    this.metric.high = identity.high
  }

  /**
   * NumberDataPoint: `start_time_unix_nano = 2; time_unix_nano = 3; oneof { double as_double = 4; sfixed64 as_int = 6 }
   * exemplars = 5; attributes = 7; uint32 flags = 8`.
   */
  appendNumber(wire: WireCursor, start: number, end: number): undefined {
    const { bytes, view } = wire
    const row = this.table.buffer.rows
    let startTime = ABSENT
    let time = ABSENT
    let value = ABSENT
    let type: number = NumberType.none
    let flags = 0
    this.beginPoint()
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
          this.appendAttribute(wire, from, pos)
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
          this.exemplars.append(wire, from, pos, row)
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
    this.endPoint(view, startTime, time, flags)
    return undefined
  }

  /**
   * HistogramDataPoint: `start = 2; time = 3; fixed64 count = 4; optional double sum = 5; repeated fixed64 bucket_counts
   * = 6; repeated double explicit_bounds = 7; exemplars = 8; attributes = 9; flags = 10; optional double min = 11; max = 12`.
   */
  appendHistogram(wire: WireCursor, start: number, end: number): RowRejection | undefined {
    const { view } = wire
    const { buffer, histogram } = this.table
    const row = buffer.rows
    histogram.fillTo(row)
    const { bounds, counts } = histogram
    const { keys, values, types } = this.attributes
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
    this.beginPoint()
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
          this.exemplars.append(wire, from, pos, row)
          break
        case 0x4a:
          this.appendAttribute(wire, from, pos)
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
      this.exemplars.discardPoint()
      return 'invalid_bucket_counts'
    }
    histogram.boundOffsets.u64(bounds.length / 8, 0)
    histogram.countOffsets.u64(counts.length / 8, 0)
    histogram.rows = row + 1
    this.appendDistribution(view, row, count, sum, min, max)
    this.endPoint(view, startTime, time, flags)
    return undefined
  }

  /**
   * ExponentialHistogramDataPoint: `attributes = 1; start = 2; time = 3; fixed64 count = 4; optional double sum = 5;
   * sint32 scale = 6; fixed64 zero_count = 7; Buckets positive = 8; Buckets negative = 9; flags = 10; exemplars = 11;
   * optional double min = 12; max = 13; double zero_threshold = 14`.
   */
  appendExponentialHistogram(wire: WireCursor, start: number, end: number): undefined {
    const { view } = wire
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
    this.beginPoint()
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const from = wire.start
      pos = wire.next
      switch (tag) {
        case 0x0a:
          this.appendAttribute(wire, from, pos)
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
          this.exemplars.append(wire, from, pos, row)
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
    this.appendDistribution(view, row, count, sum, min, max)
    this.endPoint(view, startTime, time, flags)
    return undefined
  }

  /**
   * SummaryDataPoint: `start = 2; time = 3; fixed64 count = 4; double sum = 5; quantile_values = 6; attributes = 7;
   * flags = 8`. Its sum is always there: left out, it is 0.
   */
  appendSummary(wire: WireCursor, start: number, end: number): undefined {
    const { view } = wire
    const { buffer, summary, distribution } = this.table
    const row = buffer.rows
    summary.fillTo(row)
    let startTime = ABSENT
    let time = ABSENT
    let count = ABSENT
    let sum = ABSENT
    let flags = 0
    this.beginPoint()
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
          this.appendQuantile(wire, from, pos)
          break
        case 0x3a:
          this.appendAttribute(wire, from, pos)
          break
        case 0x40:
          flags = wire.low
      }
    }
    summary.offsets.u64(summary.quantile.length / 8, 0)
    summary.rows = row + 1
    this.appendDistribution(view, row, count, sum, ABSENT, ABSENT)
    distribution.sumIsNull.bytes[row] = 0
    this.endPoint(view, startTime, time, flags)
    return undefined
  }

  /** ValueAtQuantile: `double quantile = 1; double value = 2`. */
  private appendQuantile(wire: WireCursor, start: number, end: number): void {
    const { quantile, value } = this.table.summary
    let quantileAt = ABSENT
    let valueAt = ABSENT
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x09) quantileAt = wire.start
      else if (tag === 0x11) valueAt = wire.start
    }
    appendFixed64(quantile, wire.view, quantileAt)
    appendFixed64(value, wire.view, valueAt)
  }

  private appendDistribution(view: DataView, row: number, count: number, sum: number, min: number, max: number): void {
    const { distribution } = this.table
    if (distribution.rows < row) distribution.fillTo(row)
    appendFixed64(distribution.count, view, count)
    distribution.sumIsNull.u8(sum === ABSENT ? 1 : 0)
    appendFixed64(distribution.sum, view, sum)
    distribution.minIsNull.u8(min === ABSENT ? 1 : 0)
    appendFixed64(distribution.min, view, min)
    distribution.maxIsNull.u8(max === ABSENT ? 1 : 0)
    appendFixed64(distribution.max, view, max)
    distribution.rows = row + 1
  }

  private beginPoint(): void {
    this.attributeSet.begin()
    this.exemplars.beginPoint()
  }

  private appendAttribute(wire: WireCursor, start: number, end: number): void {
    const { keys, values, types } = this.attributes
    const keyStart = keys.length
    const valueStart = values.length
    this.attributes.append(wire, start, end)
    const type = types.bytes[types.length - 1] as number
    this.attributeSet.add(type, keys.view, keyStart, keys.length, values.view, valueStart, values.length)
  }

  /** Writes the columns that every point has; with it the table has a row more. */
  private endPoint(view: DataView, startTime: number, time: number, flags: number): void {
    const { table, series } = this
    series.low = this.metric.low
    series.high = this.metric.high
    series.hash(this.attributeSet)
    series.finish()
    table.seriesId.u64(series.low, series.high)
    appendFixed64(table.startTime, view, startTime)
    appendFixed64(table.time, view, time)
    table.attributeOffsets.u64(this.attributes.count, 0)
    table.flags.u32(flags)
    this.exemplars.endPoint(table.buffer.rows)
    table.buffer.rows++
  }
}

/** Buckets: `sint32 offset = 1; repeated uint64 bucket_counts = 2`. A second one is merged: it adds counts. */
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
