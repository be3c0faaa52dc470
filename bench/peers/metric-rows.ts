import { fileURLToPath } from 'node:url'
import { fromBinary } from '@bufbuild/protobuf'
import protobuf from 'protobufjs'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import type { KeyValue as BufbuildKeyValue } from '../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { Origin } from './otlp-rows.ts'

/**
 * Data points as rows of JSONEachRow, by libraries that decode into objects. The columns are those of the OpenTelemetry
 * Collector's ClickHouse exporter, which has a table for each kind: a row holds the columns of its kind alone.
 */
export type MetricRow = Record<string, unknown>

const PROTO = fileURLToPath(new URL('../../schemas/otlp/proto/', import.meta.url))

const root = new protobuf.Root()
root.resolvePath = (_origin, target) => PROTO + target
root.loadSync('opentelemetry/proto/collector/metrics/v1/metrics_service.proto')
const exportRequest = root.lookupType('opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest')

/** By protobufjs. */
export function decodeMetricRows(body: Buffer, origin: Origin): MetricRow[] {
  const request = exportRequest.decode(body) as unknown as ExportRequest
  const rows: MetricRow[] = []
  for (const resourceMetrics of request.resourceMetrics) {
    const resourceAttributes = toMap(resourceMetrics.resource?.attributes ?? [], textOf)
    for (const { scope, metrics } of resourceMetrics.scopeMetrics) {
      for (const metric of metrics) {
        const shared = sharedColumns(origin, resourceMetrics, resourceAttributes, scope, metric)
        const data = metric.data === undefined ? undefined : metric[metric.data]
        for (const point of data?.dataPoints ?? []) {
          const value = point.value === 'asInt' ? point.asInt.toString() : point.asDouble
          rows.push(toRow(shared, data as Data<KeyValue>, point, value, toMap(point.attributes, textOf)))
        }
      }
    }
  }
  return rows
}

/** The same rows by @bufbuild/protobuf and its generated code. */
export function decodeMetricRowsByBufbuild(body: Buffer, origin: Origin): MetricRow[] {
  const rows: MetricRow[] = []
  for (const resourceMetrics of fromBinary(ExportMetricsServiceRequestSchema, body).resourceMetrics) {
    const resourceAttributes = toMap(resourceMetrics.resource?.attributes ?? [], textOfBufbuild)
    for (const { scope, metrics } of resourceMetrics.scopeMetrics) {
      for (const metric of metrics) {
        const shared = sharedColumns(origin, resourceMetrics, resourceAttributes, scope, metric)
        const data = metric.data.value as Data<BufbuildKeyValue> | undefined
        for (const point of data?.dataPoints ?? []) {
          const number = point.value as { case?: string; value?: number | bigint } | undefined
          const value = number?.case === 'asInt' ? String(number.value) : number?.value
          rows.push(
            toRow(shared, data as Data<BufbuildKeyValue>, point, value, toMap(point.attributes, textOfBufbuild)),
          )
        }
      }
    }
  }
  return rows
}

function sharedColumns(
  origin: Origin,
  { schemaUrl }: { readonly schemaUrl: string },
  resourceAttributes: Record<string, string>,
  scope: { readonly name: string; readonly version: string } | null | undefined,
  { name, description, unit }: { readonly name: string; readonly description: string; readonly unit: string },
): MetricRow {
  return {
    WorkspaceId: origin.workspaceId,
    SurfaceId: origin.surfaceId,
    ReceivedAt: (origin.receivedAtMs / 1_000).toFixed(3),
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

function toRow<Attribute>(
  shared: MetricRow,
  { aggregationTemporality, isMonotonic }: Data<Attribute>,
  point: Point<Attribute>,
  value: string | number | bigint | undefined,
  attributes: Record<string, string>,
): MetricRow {
  const row: MetricRow = {
    ...shared,
    Attributes: attributes,
    StartTimeUnix: seconds(point.startTimeUnixNano),
    TimeUnix: seconds(point.timeUnixNano),
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

/** DateTime64 takes seconds with nine decimals. */
function seconds(unixNano: Integer): string {
  const digits = unixNano.toString().padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

function toMap<Attribute extends { readonly key: string; readonly value?: unknown }>(
  attributes: readonly Attribute[],
  textOf: (value: Attribute['value']) => string,
): Record<string, string> {
  const map: Record<string, string> = {}
  for (const { key, value } of attributes) map[key] = textOf(value)
  return map
}

function textOf(value: AnyValue | null): string {
  switch (value?.value) {
    case 'stringValue':
      return value.stringValue
    case 'intValue':
      return value.intValue.toString()
    case 'boolValue':
      return String(value.boolValue)
    case 'doubleValue':
      return String(value.doubleValue)
    case undefined:
      return ''
    default:
      return JSON.stringify(value)
  }
}

function textOfBufbuild(value: BufbuildKeyValue['value']): string {
  const member = value?.value
  if (member?.case === undefined) return ''
  switch (member.case) {
    case 'stringValue':
      return member.value
    case 'intValue':
    case 'boolValue':
    case 'doubleValue':
      return String(member.value)
    default:
      return JSON.stringify(member.value)
  }
}

/** A bigint, or protobufjs's Long. */
type Integer = { toString(): string }

interface Data<Attribute> {
  readonly dataPoints: readonly Point<Attribute>[]
  readonly aggregationTemporality?: number
  readonly isMonotonic?: boolean
}

/** A point of any kind, as far as both libraries and the payloads of the bench have it. */
interface Point<Attribute> {
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano: Integer
  readonly timeUnixNano: Integer
  readonly flags: number
  readonly value?: unknown
  readonly count?: Integer
  readonly sum?: number
  readonly min?: number
  readonly max?: number
  readonly explicitBounds?: readonly number[]
  readonly bucketCounts?: readonly Integer[]
}

/** What protobufjs makes of the messages, as far as rows need it. */
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
} & Readonly<Record<Kind, Data<KeyValue> & { readonly dataPoints: readonly NumberPoint[] }>>

type NumberPoint = Point<KeyValue> & { readonly asInt: Integer; readonly asDouble: number }

interface KeyValue {
  readonly key: string
  readonly value: AnyValue | null
}

interface AnyValue {
  /** The name of the field that is set. */
  readonly value: string | undefined
  readonly stringValue: string
  readonly intValue: Integer
  readonly boolValue: boolean
  readonly doubleValue: number
}
