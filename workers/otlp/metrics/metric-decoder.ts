import { type MetricPointsTable, MetricType } from '../../../clickhouse/tables/metric-points-table.ts'
import { cutString, TEXT_LIMITS } from '../protobuf/cut-text.ts'
import { JsonAttributes } from '../protobuf/json-attributes.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'
import type { RowRejection } from '../protobuf/refusal.ts'
import { EmbeddedMessage, MessageCache } from '../protobuf/resource-cache.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { HistogramPointDecoder } from './histogram-points.ts'
import { NumberPointDecoder } from './number-points.ts'
import { PointWriter } from './point-writer.ts'
import { Hash64 } from './series-id.ts'
import { SummaryPointDecoder } from './summary-points.ts'

const MAX_TEMPORALITY = 2

/** The points of a payload, as far as they are decided on apart from their content. */
export interface PointFilter {
  /** Begins the points of a metric. `fields` has its other fields. */
  beginMetric(type: MetricType, fields: EmbeddedMessage): void
  /** Reports whether the point `[start, end)` is left out before it is read. */
  isLeftOut(wire: WireCursor, start: number, end: number): boolean
  /** Counts a point that is left out. */
  reject(reason: RowRejection): void
}

/** Values that the points of a Metric share in addition to its header. */
interface Stream {
  type: MetricType
  temporality: number
  isMonotonic: boolean
}

/** Appends Metric messages to the columns of `metric_points`. */
export class MetricDecoder {
  private readonly table: MetricPointsTable
  private readonly headers: MetricHeaders
  private readonly writer: PointWriter
  private readonly numbers: NumberPointDecoder
  private readonly histograms: HistogramPointDecoder
  private readonly summaries: SummaryPointDecoder
  private readonly identity = new Hash64()
  private readonly stream: Stream = { type: MetricType.gauge, temporality: 0, isMonotonic: false }

  constructor(table: MetricPointsTable, attributes: PackedAttributes) {
    this.table = table
    this.headers = new MetricHeaders(table.metric)
    this.writer = new PointWriter(table, attributes)
    this.numbers = new NumberPointDecoder(table, this.writer)
    this.histograms = new HistogramPointDecoder(table, this.writer)
    this.summaries = new SummaryPointDecoder(table, this.writer)
  }

  /** Forgets the cached dictionary indexes. Must be called after the columns were rewound or reset. */
  clearCache(): void {
    this.headers.clear()
    this.writer.attributes.clearCache()
  }

  /**
   * Appends the points of the Metric message `[start, end)`. The last of several members of its `data` counts, merged
   * with the members of its kind directly before it. A metric without data has no points.
   */
  append(wire: WireCursor, start: number, end: number, scope: Hash64, filter: PointFilter): void {
    const fields = new EmbeddedMessage(wire)
    let data: EmbeddedMessage | undefined
    let dataTag = 0
    let runStart = start
    for (let pos = start; pos < end; ) {
      const fieldStart = pos
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (typeOfData(tag) === undefined) continue
      if (runStart < fieldStart) fields.add(runStart, fieldStart)
      runStart = pos
      if (data === undefined || tag !== dataTag) data = new EmbeddedMessage(wire)
      data.add(contentStart, pos)
      dataTag = tag
    }
    if (runStart < end) fields.add(runStart, end)
    const type = typeOfData(dataTag)
    if (data !== undefined && type !== undefined) this.appendData(fields, type, data, scope, filter)
  }

  /** Gauge, Sum, Histogram, ExponentialHistogram or Summary: `data_points = 1`, and the fields of `readStream`. */
  private appendData(
    fields: EmbeddedMessage,
    type: MetricType,
    data: EmbeddedMessage,
    scope: Hash64,
    filter: PointFilter,
  ): void {
    const wire = data.cursor()
    const { buffer } = this.table
    const firstRow = buffer.rows
    const count = this.readStream(type, wire, data.start, data.end)
    if (count === 0) return
    this.table.checkRows(count)
    const header = this.headers.of(fields)
    this.writer.beginMetric(this.identify(header, scope))
    filter.beginMetric(type, fields)
    for (let pos = data.start; pos < data.end; ) {
      const tag = wire.readField(pos, data.end)
      const pointStart = wire.start
      pos = wire.next
      if (tag !== 0x0a || filter.isLeftOut(wire, pointStart, pos)) continue
      const rejection = this.appendPoint(type, wire, pointStart, pos)
      if (rejection !== undefined) filter.reject(rejection)
    }
    this.fillMetric(header, buffer.rows - firstRow)
  }

  private appendPoint(type: MetricType, wire: WireCursor, start: number, end: number): RowRejection | undefined {
    switch (type) {
      case MetricType.gauge:
      case MetricType.sum:
        return this.numbers.append(wire, start, end)
      case MetricType.histogram:
        return this.histograms.append(wire, start, end)
      case MetricType.exponentialHistogram:
        return this.histograms.appendExponential(wire, start, end)
      case MetricType.summary:
        return this.summaries.append(wire, start, end)
    }
  }

  /**
   * `AggregationTemporality aggregation_temporality = 2` of sums and histograms, `bool is_monotonic = 3` of sums.
   * Returns the number of points.
   */
  private readStream(type: MetricType, wire: WireCursor, start: number, end: number): number {
    let count = 0
    const { stream } = this
    stream.type = type
    stream.temporality = 0
    stream.isMonotonic = false
    const hasTemporality = type !== MetricType.gauge && type !== MetricType.summary
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x0a) count++
      else if (tag === 0x10 && hasTemporality) stream.temporality = wire.low <= MAX_TEMPORALITY ? wire.low : 0
      else if (tag === 0x18 && type === MetricType.sum) stream.isMonotonic = wire.low !== 0 || wire.high !== 0
    }
    return count
  }

  /** Hashes the identifying fields of OpenTelemetry's data model, except the attributes of the point. */
  private identify(header: MetricHeader, scope: Hash64): Hash64 {
    const { identity, stream } = this
    identity.begin()
    identity.hash(scope)
    identity.hash(header.identity)
    identity.word(stream.type | (stream.temporality << 8) | (stream.isMonotonic ? 1 << 16 : 0))
    return identity
  }

  private fillMetric(header: MetricHeader, count: number): void {
    const { metric } = this.table
    const { stream } = this
    metric.name.fill(header.name, count)
    metric.description.fill(header.description, count)
    metric.unit.fill(header.unit, count)
    metric.metadata.fill(header.metadata, count)
    metric.type.fillBytes(stream.type, count)
    metric.temporality.fillBytes(stream.temporality, count)
    metric.isMonotonic.fillBytes(stream.isMonotonic ? 1 : 0, count)
  }
}

/** Metric: `gauge = 5; sum = 7; histogram = 9; exponential_histogram = 10; summary = 11`. */
function typeOfData(tag: number): MetricType | undefined {
  switch (tag) {
    case 0x2a:
      return MetricType.gauge
    case 0x3a:
      return MetricType.sum
    case 0x4a:
      return MetricType.histogram
    case 0x52:
      return MetricType.exponentialHistogram
    case 0x5a:
      return MetricType.summary
    default:
      return undefined
  }
}

/** The fields of a Metric except its data, as dictionary indexes, and a hash of its identity. */
interface MetricHeader {
  name: number
  description: number
  unit: number
  metadata: number
  identity: { low: number; high: number }
}

/** Converts the name, description, unit and metadata of a Metric once per distinct bytes in a batch. */
class MetricHeaders {
  private readonly columns: MetricPointsTable['metric']
  private readonly headers = new MessageCache(fields => this.convert(fields))

  constructor(columns: MetricPointsTable['metric']) {
    this.columns = columns
  }

  /** Forgets all headers. Must be called whenever the dictionaries lose keys. */
  clear(): void {
    this.headers.clear()
  }

  /** Returns the header of the fields of a Metric without its data. */
  of(fields: EmbeddedMessage): MetricHeader {
    return this.headers.of(fields)
  }

  /** Metric: `string name = 1; string description = 2; string unit = 3; repeated KeyValue metadata = 12`. */
  private convert(fields: EmbeddedMessage): MetricHeader {
    const wire = fields.cursor()
    const end = fields.end
    const metadata = new JsonAttributes()
    let name = ''
    let description = ''
    let unit = ''
    for (let pos = fields.start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x0a) name = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x12) description = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x1a) unit = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x62) metadata.add(wire, wire.start, pos)
    }
    const hash = new Hash64()
    hash.begin()
    hash.text(name)
    hash.text(unit)
    hash.finish()
    return {
      name: this.columns.name.indexOf(cutString(name, TEXT_LIMITS.metricName)),
      description: this.columns.description.indexOf(description),
      unit: this.columns.unit.indexOf(unit),
      metadata: metadata.indexIn(this.columns.metadata),
      identity: { low: hash.low, high: hash.high },
    }
  }
}
