import { MetricPointsTable, MetricType } from '../../../clickhouse/tables/metric-points-table.ts'
import { cutText, TEXT_LIMITS } from '../protobuf/cut-text.ts'
import { OtlpBatch } from '../protobuf/otlp-batch.ts'
import { PackedAttributes } from '../protobuf/packed-attributes.ts'
import type { PayloadSource } from '../protobuf/refusal.ts'
import { EmbeddedMessage } from '../protobuf/resource-cache.ts'
import { WireCursor } from '../protobuf/wire.ts'
import { MetricDecoder, type PointFilter } from './metric-decoder.ts'
import { SeriesScope } from './series-scope.ts'

/**
 * Creates a batch of rows of `metric_points`, one per data point, decoded from ExportMetricsServiceRequest messages.
 */
export function createMetricsBatch(): OtlpBatch {
  const attributes = new PackedAttributes()
  const table = new MetricPointsTable(attributes)
  return new MetricsBatch(table, new MetricDecoder(table, attributes))
}

/** Names of the messages of points, by the type of their metric. */
const POINT_MESSAGES: Readonly<Record<MetricType, string>> = {
  [MetricType.gauge]: 'NumberDataPoint',
  [MetricType.sum]: 'NumberDataPoint',
  [MetricType.histogram]: 'HistogramDataPoint',
  [MetricType.exponentialHistogram]: 'ExponentialHistogramDataPoint',
  [MetricType.summary]: 'SummaryDataPoint',
}

class MetricsBatch extends OtlpBatch {
  readonly #table: MetricPointsTable
  readonly #decoder: MetricDecoder
  readonly #seriesScope: SeriesScope
  readonly #filter: PointFilter = {
    beginMetric: (type, fields) => this.dropper?.beginMetric(fields, POINT_MESSAGES[type]),
    isLeftOut: (wire, start, end) => this.isLeftOut(wire, start, end, this.#table.buffer.rows),
    reject: reason => this.reject(reason, this.#table.buffer.rows),
  }

  constructor(table: MetricPointsTable, decoder: MetricDecoder) {
    super(table.scope, table.buffer)
    this.#table = table
    this.#decoder = decoder
    this.#seriesScope = new SeriesScope(table.scope)
  }

  protected override forgetScrubbed(): void {
    this.#decoder.clearCache()
  }

  /** An SDK that has no instrument, such as the one of Go, exports its resource alone at each interval. */
  protected override isIdle(body: Buffer): boolean {
    const wire = new WireCursor(body)
    for (let pos = 0; pos < body.length; ) {
      const tag = wire.readField(pos, body.length)
      pos = wire.next
      if (tag !== 0x0a || !isResourceAlone(wire, wire.start, pos)) return false
    }
    return true
  }

  protected beginPayload(source: PayloadSource): void {
    this.#seriesScope.beginPayload(source)
  }

  protected beginResource(message: EmbeddedMessage, schemaUrl: string): void {
    this.#seriesScope.beginResource(this.scopes.beginResource(message, schemaUrl))
  }

  /** ScopeMetrics: `InstrumentationScope scope = 1; repeated Metric metrics = 2; string schema_url = 3`. */
  protected appendScope(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === 0x0a) message.add(contentStart, pos)
      else if (tag === 0x1a) schemaUrl = cutText(wire.bytes, contentStart, pos, TEXT_LIMITS.schemaUrl)
    }
    const identity = this.#seriesScope.identityOf(this.scopes.beginScope(message, schemaUrl))
    const { buffer } = this.#table
    const firstRow = buffer.rows
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) this.#decoder.append(wire, wire.start, pos, identity, this.#filter)
    }
    this.scopes.fill(buffer.rows - firstRow)
  }

  protected endPayload(): void {
    this.#table.levelColumns()
  }

  protected rewindRows(): void {
    this.#table.realignColumns()
    this.#decoder.clearCache()
  }
}

/** Reports whether a ResourceMetrics has a resource and at most the address of a schema beside it. */
function isResourceAlone(wire: WireCursor, start: number, end: number): boolean {
  for (let pos = start; pos < end; pos = wire.next) {
    const tag = wire.readField(pos, end)
    if (tag !== 0x0a && tag !== 0x1a) return false
  }
  return end > start
}
