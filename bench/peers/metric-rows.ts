import { type KeyValue, type Long, loadType, type RowContext, toMap, toSeconds } from './protobufjs.ts'

/**
 * A data point as a row of JSONEachRow, with the columns of the OpenTelemetry Collector's ClickHouse exporter. The exporter
 * has a table for each kind of metric, so a row has only the columns of its kind.
 */
type MetricRow = Record<string, unknown>

const exportRequest = loadType(
  'opentelemetry/proto/collector/metrics/v1/metrics_service.proto',
  'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest',
)

/** Decodes an OTLP request into objects, and makes a row object of each data point. */
export function decodeMetricRows(body: Buffer, context: RowContext): MetricRow[] {
  const request = exportRequest.decode(body) as unknown as ExportRequest
  const rows: MetricRow[] = []
  for (const resourceMetrics of request.resourceMetrics) {
    const resourceAttributes = toMap(resourceMetrics.resource?.attributes ?? [])
    for (const { scope, metrics } of resourceMetrics.scopeMetrics) {
      for (const metric of metrics) {
        const shared = sharedColumns(context, resourceMetrics, resourceAttributes, scope, metric)
        const data = metric.data === undefined ? undefined : metric[metric.data]
        for (const point of data?.dataPoints ?? []) {
          const value = point.value === 'asInt' ? point.asInt.toString() : point.asDouble
          rows.push(toRow(shared, data as Data, point, value, toMap(point.attributes)))
        }
      }
    }
  }
  return rows
}

function sharedColumns(
  context: RowContext,
  { schemaUrl }: { readonly schemaUrl: string },
  resourceAttributes: Record<string, string>,
  scope: { readonly name: string; readonly version: string } | null | undefined,
  { name, description, unit }: { readonly name: string; readonly description: string; readonly unit: string },
): MetricRow {
  return {
    WorkspaceId: context.workspaceId,
    SurfaceId: context.surfaceId,
    ReceivedAt: (context.receivedAtMs / 1_000).toFixed(3),
    ResourceAttributes: resourceAttributes,
    ResourceSchemaUrl: schemaUrl,
    ScopeName: scope?.name ?? '',
    ScopeVersion: scope?.version ?? '',
    ServiceName: resourceAttributes['service.name'] ?? '',
    MetricName: name,
    MetricDescription: description,
    MetricUnit: unit,
  }
}

function toRow(
  shared: MetricRow,
  { aggregationTemporality, isMonotonic }: Data,
  point: Point,
  value: string | number | bigint | undefined,
  attributes: Record<string, string>,
): MetricRow {
  const row: MetricRow = {
    ...shared,
    Attributes: attributes,
    StartTimeUnix: toSeconds(point.startTimeUnixNano),
    TimeUnix: toSeconds(point.timeUnixNano),
    Flags: point.flags,
    AggregationTemporality: aggregationTemporality,
  }
  if (point.bucketCounts) {
    row.Count = point.count?.toString()
    row.Sum = point.sum
    row.BucketCounts = point.bucketCounts.map(String)
    row.ExplicitBounds = point.explicitBounds
    row.Min = point.min
    row.Max = point.max
  } else {
    row.Value = value
    row.IsMonotonic = isMonotonic
  }
  return row
}

interface Data {
  readonly dataPoints: readonly Point[]
  readonly aggregationTemporality?: number
  readonly isMonotonic?: boolean
}

/** A data point of any kind, with the fields that the payloads of the bench use. */
interface Point {
  readonly attributes: readonly KeyValue[]
  readonly startTimeUnixNano: Long
  readonly timeUnixNano: Long
  readonly flags: number
  readonly value?: unknown
  readonly count?: Long
  readonly sum?: number
  readonly min?: number
  readonly max?: number
  readonly explicitBounds?: readonly number[]
  readonly bucketCounts?: readonly Long[]
}

/** The decoded request, limited to the fields of rows. */
interface ExportRequest {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] } | null
    readonly schemaUrl: string
    readonly scopeMetrics: readonly {
      readonly scope: { readonly name: string; readonly version: string } | null
      readonly metrics: readonly Metric[]
    }[]
  }[]
}

type Kind = 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram' | 'summary'

type Metric = { readonly name: string; readonly description: string; readonly unit: string } & {
  /** The name of the field that is set. */
  readonly data: Kind | undefined
} & Readonly<Record<Kind, Data & { readonly dataPoints: readonly NumberPoint[] }>>

type NumberPoint = Point & { readonly asInt: Long; readonly asDouble: number }
