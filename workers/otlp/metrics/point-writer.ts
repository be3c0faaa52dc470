import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { ABSENT, appendFixed64 } from '../protobuf/wire-columns.ts'
import { PointDetails } from './point-details.ts'
import { AttributeSetHash, Hash64 } from './series-id.ts'

/**
 * Writes the columns that data points of all kinds share. The decoder of a kind calls `beginPoint`, appends attributes
 * and details, writes the columns of its kind and calls `endPoint`. Nothing is allocated per point.
 */
export class PointWriter {
  readonly attributes: PackedAttributes
  readonly details: PointDetails
  private readonly table: MetricPointsTable
  private readonly metric = new Hash64()
  private readonly series = new Hash64()
  private readonly attributeSet = new AttributeSetHash()

  constructor(table: MetricPointsTable, attributes: PackedAttributes) {
    this.table = table
    this.attributes = attributes
    this.details = new PointDetails(table)
  }

  /** Begins the points of a Metric. Its hash identifies it among the metrics of all resources and scopes. */
  beginMetric(identity: Hash64): void {
    this.metric.low = identity.low
    this.metric.high = identity.high
  }

  beginPoint(): void {
    this.attributes.begin()
    this.attributeSet.begin()
    this.details.beginPoint()
  }

  /** Removes what a rejected point has left. */
  discardPoint(): void {
    this.attributes.discard()
    this.details.discardPoint()
  }

  appendAttribute(wire: WireCursor, start: number, end: number): void {
    const { attributes, attributeSet } = this
    const keyStart = attributes.keys.length
    attributes.append(wire, start, end)
    attributeSet.add(attributes, keyStart)
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
    this.attributes.end()
    table.flags.u32(flags)
    this.details.endPoint()
    table.buffer.rows++
  }

  /** Appends count and sum from their positions in the message. */
  appendDistribution(view: DataView, row: number, count: number, sum: number): void {
    const { distribution } = this.table
    if (distribution.rows < row) distribution.fillTo(row)
    appendFixed64(distribution.count, view, count)
    distribution.sumIsNull.u8(sum === ABSENT ? 1 : 0)
    appendFixed64(distribution.sum, view, sum)
    distribution.rows = row + 1
  }
}
