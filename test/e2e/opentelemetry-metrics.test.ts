import { ValueType } from '@opentelemetry/api'
import { OTLPMetricExporter as GrpcMetricExporter } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  AggregationType,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { TYPES } from '../../clickhouse/queries/attributes/attribute-columns.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import { type Door, exporterOptions } from '../support/clients/exporter-options.ts'
import { nanos, textsOf, typesOf } from '../support/oracles/attribute-text.ts'
import type { NativeValue } from '../support/oracles/read-block.ts'
import { detailsOf } from '../support/oracles/unpack-point.ts'
import { wholeRow } from '../support/oracles/whole-row.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

type MetricExporter = typeof ProtobufMetricExporter | typeof JsonMetricExporter | typeof GrpcMetricExporter
/** How an export is sent. */
type Sent = readonly [Exporter: MetricExporter, door: Door, compression: CompressionAlgorithm]

/** Uses every kind of instrument of the official SDK and exports twice. */
async function useInstruments(service: string, [Exporter, door, compression]: Sent) {
  const exporter = new Exporter({
    ...exporterOptions(stack, 'metrics', door, compression),
    temporalityPreference: AggregationTemporality.DELTA,
  })
  const seen = new InMemoryMetricExporter(AggregationTemporality.DELTA)
  const exported: ResourceMetrics[] = []
  const send = exporter.export.bind(exporter)
  exporter.export = (metrics, done) => {
    exported.push(structuredMetrics(metrics))
    send(metrics, done)
  }
  const provider = new MeterProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': '7', 'host.name': 'h1' }),
    readers: [
      new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: HOUR_MS }),
      new PeriodicExportingMetricReader({ exporter: seen, exportIntervalMillis: HOUR_MS }),
    ],
    views: [{ instrumentName: 'payload.size', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
  })
  const meter = provider.getMeter('shop', '0.3', { schemaUrl: 'https://opentelemetry.io/schemas/1.30.0' })
  const orders = meter.createCounter('orders', {
    description: 'Orders placed',
    unit: '{order}',
    valueType: ValueType.INT,
  })
  const revenue = meter.createCounter('revenue', { unit: 'CHF' })
  const queue = meter.createUpDownCounter('queue.length', { valueType: ValueType.INT })
  const temperature = meter.createGauge('temperature', { unit: 'Cel' })
  const duration = meter.createHistogram('request.duration', { unit: 'ms' })
  const size = meter.createHistogram('payload.size', { unit: 'By', valueType: ValueType.INT })
  meter.createObservableGauge('memory').addCallback(result => result.observe(123456789, { pool: 'heap' }))
  for (let round = 0; round < 2; round++) {
    orders.add(9007199254740991 - round, { country: 'CH', express: true, lines: 3 })
    orders.add(1, { country: 'LI' })
    revenue.add(12.75 + round)
    queue.add(-5)
    temperature.record(-40.5, { room: 'Büro' })
    for (const ms of [0, 3, 70, 12_345.6]) duration.record(ms, { route: '/cart' })
    for (const bytes of [0, 1, 1_000, 1_000_000]) size.record(bytes)
    await provider.forceFlush()
  }
  await provider.shutdown()
  return exported
}

/** Copies the metrics, because the SDK uses their buckets again. */
function structuredMetrics(metrics: ResourceMetrics): ResourceMetrics {
  return { resource: metrics.resource, scopeMetrics: structuredClone(metrics.scopeMetrics) }
}

describe.each([
  ['protobuf', [ProtobufMetricExporter, 'http', CompressionAlgorithm.NONE]],
  ['protobuf, gzip', [ProtobufMetricExporter, 'drain', CompressionAlgorithm.GZIP]],
  ['JSON', [JsonMetricExporter, 'drain', CompressionAlgorithm.NONE]],
  ['JSON, gzip', [JsonMetricExporter, 'http', CompressionAlgorithm.GZIP]],
  ['gRPC', [GrpcMetricExporter, 'grpc', CompressionAlgorithm.NONE]],
  ['gRPC, gzip', [GrpcMetricExporter, 'grpc', CompressionAlgorithm.GZIP]],
] satisfies [string, Sent][])('metrics of the official SDK as %s', (name, sent) => {
  it('are stored with every field of every point', async () => {
    const service = `metered shop (${name})`
    const exported = await useInstruments(service, sent)
    const expected = exported
      .flatMap(resource => resource.scopeMetrics.flatMap(scope => scope.metrics))
      .flatMap(metric => expectedRows(service, metric))
    expect(new Set(expected.map(row => row.type))).toEqual(
      new Set(['sum', 'gauge', 'histogram', 'exponential_histogram']),
    )
    const rows = await until('every point is stored', async () => {
      const read = await readPoints(service)
      return read.length >= expected.length ? read : undefined
    })
    expect(rows.sort(byKey)).toEqual(expected.sort(byKey))
  })
})

type Row = Record<string, unknown>

async function readPoints(service: string): Promise<Row[]> {
  const result = await clickhouse.query({
    query: `
      SELECT * EXCEPT (received_at, series_id, bounds, counts, exponential, details), explicit_bounds, bucket_counts, scale,
        positive_offset, negative_offset, zero_count, positive_bucket_counts, negative_bucket_counts, hex(details) AS entries
      FROM metric_points WHERE service_name = {service: String}`,
    query_params: { service },
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
  })
  const rows = await result.json<Record<string, NativeValue> & { entries: string }>()
  return rows.map(({ entries, ...row }) => ({ ...wholeRow(row), ...detailsOf(Buffer.from(entries, 'hex')) }))
}

const ABSENT: Row = {
  value_type: 'none',
  as_int: '0',
  as_double: 0,
  count: '0',
  sum: null,
  min: null,
  max: null,
  explicit_bounds: [],
  bucket_counts: [],
  scale: 0,
  zero_count: '0',
  zero_threshold: 0,
  positive_offset: 0,
  positive_bucket_counts: [],
  negative_offset: 0,
  negative_bucket_counts: [],
  quantile_values: [],
  exemplars: [],
}

const TEMPORALITY = { [AggregationTemporality.DELTA]: 'delta', [AggregationTemporality.CUMULATIVE]: 'cumulative' }

function expectedRows(service: string, metric: MetricData): Row[] {
  return metric.dataPoints.map(point => ({
    workspace_id: stack.secrets.workspaceId,
    surface_id: stack.secrets.surfaceId,
    service_name: service,
    service_version: '7',
    resource: JSON.stringify({ 'host.name': 'h1', 'service.name': service, 'service.version': '7' }),
    resource_dropped_attributes_count: 0,
    resource_schema_url: '',
    scope_name: 'shop',
    scope_version: '0.3',
    scope_attributes: '{}',
    scope_schema_url: 'https://opentelemetry.io/schemas/1.30.0',
    scope_dropped_attributes_count: 0,
    metric_name: metric.descriptor.name,
    description: metric.descriptor.description,
    unit: metric.descriptor.unit,
    metadata: '{}',
    aggregation_temporality:
      metric.dataPointType === DataPointType.GAUGE ? 'unspecified' : TEMPORALITY[metric.aggregationTemporality],
    is_monotonic: metric.dataPointType === DataPointType.SUM && metric.isMonotonic,
    start_time_unix_nano: String(nanos(point.startTime)),
    time_unix_nano: String(nanos(point.endTime)),
    attributes: Object.entries(textsOf(point.attributes)),
    attribute_types: typesOf(point.attributes).map(type => TYPES.indexOf(type)),
    flags: 0,
    ...ABSENT,
    ...expectedValue(metric, point),
  }))
}

function expectedValue(metric: MetricData, point: MetricData['dataPoints'][number]): Row {
  const { value } = point
  if (typeof value === 'number') {
    const type = metric.dataPointType === DataPointType.SUM ? 'sum' : 'gauge'
    return metric.descriptor.valueType === ValueType.INT
      ? { type, value_type: 'int', as_int: String(value) }
      : { type, value_type: 'double', as_double: value }
  }
  const { count, sum, min, max } = value
  const distribution = { count: String(count), sum, min, max }
  if ('buckets' in value) {
    const counts = value.buckets.counts.map(String)
    return { type: 'histogram', ...distribution, explicit_bounds: value.buckets.boundaries, bucket_counts: counts }
  }
  return {
    type: 'exponential_histogram',
    ...distribution,
    scale: value.scale,
    zero_count: String(value.zeroCount),
    positive_offset: value.positive.offset,
    positive_bucket_counts: value.positive.bucketCounts.map(String),
    negative_offset: value.negative.offset,
    negative_bucket_counts: value.negative.bucketCounts.map(String),
  }
}

function byKey(a: Row, b: Row): number {
  const key = (row: Row) => `${row.metric_name} ${JSON.stringify(row.attributes)} ${row.time_unix_nano}`
  return key(a).localeCompare(key(b))
}
