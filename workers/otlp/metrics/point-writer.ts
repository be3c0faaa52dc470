import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import type { Attributes } from '../protobuf/attributes.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64 } from '../protobuf/wire-columns.ts'
import { ExemplarDecoder } from './exemplars.ts'
import { AttributeSetHash, Hash64 } from './series-id.ts'

/** Buffers of the attributes of points and of their exemplars. */
export interface PointAttributes {
  point: Attributes
  exemplar: Attributes
}

/**
 * Writes the columns that data points of all kinds share. The decoder of a kind calls `beginPoint`, appends attributes
 * and exemplars, writes the columns of its kind and calls `endPoint`. Nothing is allocated per point.
 */
export class PointWriter {
  readonly attributes: Attributes
  readonly exemplars: ExemplarDecoder
  private readonly table: MetricPointsTable
  private readonly metric = new Hash64()
  private readonly series = new Hash64()
  private readonly attributeSet = new AttributeSetHash()

  constructor(table: MetricPointsTable, attributes: PointAttributes) {
    this.table = table
    this.attributes = attributes.point
    this.exemplars = new ExemplarDecoder(table, attributes.exemplar)
  }

  /** Begins the points of a Metric. Its hash identifies it among the metrics of all resources and scopes. */
  beginMetric(identity: Hash64): void {
    this.metric.low = identity.low
    this.metric.high = identity.high
  }

  beginPoint(): void {
    this.attributeSet.begin()
    this.exemplars.beginPoint()
  }

  appendAttribute(wire: WireCursor, start: number, end: number): void {
    const { keys, values, types } = this.attributes
    const keyStart = keys.length
    const valueStart = values.length
    this.attributes.append(wire, start, end)
    const type = types.bytes[types.length - 1] as number
    this.attributeSet.add(type, keys.view, keyStart, keys.length, values.view, valueStart, values.length)
  }

  /** Writes the columns that every point has and completes the row. */
  endPoint(view: DataView, startTime: number, time: number, flags: number): void {
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

  /** Appends count, sum and extremes from their positions in the message. */
  appendDistribution(view: DataView, row: number, count: number, sum: number, min: number, max: number): void {
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
}
