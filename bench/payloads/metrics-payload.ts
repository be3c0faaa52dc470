import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import type { MetricSchema } from '../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'
import { int, text, webService } from './attributes.ts'

/** Options of `metricsPayload`. */
interface MetricsPayloadOptions {
  points: number
  /** Series of each metric, with one point each. */
  pointsPerMetric: number
  service?: string
  /** `service.instance.id`. Another instance has other series. */
  instance?: string
  timeUnixNano?: bigint
  /** Start of all series. Default: an hour before the time. */
  startTimeUnixNano?: bigint
  /** Numbers of the series of each metric, by which their attributes differ. Default: from 0. */
  series?: readonly number[]
  /** Factor of what counters and histograms have counted. Default: 1. */
  growth?: number
}

const ROUTES = ['/api/orders/:id', '/api/carts/:id/items', '/api/products', '/api/checkout', '/healthz']
const METHODS = ['GET', 'POST', 'GET', 'PUT']
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/**
 * Creates an ExportMetricsServiceRequest like that of a web service. Three of eight metrics are counters, three are
 * gauges (half of them of ints) and two are histograms with the default buckets. Ten resource attributes, four attributes
 * per point.
 */
export function metricsPayload({
  points,
  pointsPerMetric,
  service = 'shop-checkout',
  instance = service,
  timeUnixNano = BigInt(Date.now()) * 1_000_000n,
  startTimeUnixNano = timeUnixNano - 3_600_000_000_000n,
  series = Array.from({ length: pointsPerMetric }, (_, i) => i),
  growth = 1,
}: MetricsPayloadOptions): Buffer {
  const period = { startTimeUnixNano, timeUnixNano }
  const metrics: MessageInitShape<typeof MetricSchema>[] = []
  for (let sent = 0; sent < points; sent += pointsPerMetric) {
    metrics.push(metric(metrics.length, series.slice(0, points - sent), period, growth))
  }
  const request = create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: [
      {
        resource: { attributes: webService(service, instance) },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        scopeMetrics: [{ scope: { name: '@opentelemetry/instrumentation-http', version: '0.205.0' }, metrics }],
      },
    ],
  })
  return Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
}

function metric(
  index: number,
  series: readonly number[],
  period: { readonly startTimeUnixNano: bigint; readonly timeUnixNano: bigint },
  growth: number,
): MessageInitShape<typeof MetricSchema> {
  const common = (i: number) => ({ attributes: pointAttributes(i), ...period })
  const describe = (name: string, unit: string) => ({
    name: `${name}.${index}`,
    description: `What the service has counted as ${name}.`,
    unit,
  })
  switch (index % 8) {
    case 0:
    case 4: {
      const dataPoints = series.map(i => histogramPoint(i, growth, common(i)))
      const value = { aggregationTemporality: 2, dataPoints }
      return { ...describe('http.server.request.duration', 's'), data: { case: 'histogram', value } }
    }
    case 1:
    case 3:
    case 6: {
      const dataPoints = series.map(i => ({
        ...common(i),
        value: { case: 'asInt' as const, value: BigInt((i + 1) * 7919 * growth) },
      }))
      const value = { aggregationTemporality: 2, isMonotonic: true, dataPoints }
      return { ...describe('http.server.requests', '{request}'), data: { case: 'sum', value } }
    }
    default: {
      const isInt = index % 2 === 0
      const value = {
        dataPoints: series.map(i => ({
          ...common(i),
          value: isInt
            ? { case: 'asInt' as const, value: BigInt(i) }
            : { case: 'asDouble' as const, value: Math.random() * 100 },
        })),
      }
      return { ...describe('process.memory.usage', 'By'), data: { case: 'gauge', value } }
    }
  }
}

function histogramPoint<T>(i: number, growth: number, common: T) {
  const bucketCounts = Array.from({ length: BOUNDS.length + 1 }, (_, bucket) =>
    BigInt((((i + 3) * bucket * 31) % 500) * growth),
  )
  const count = bucketCounts.reduce((sum, value) => sum + value, 0n)
  return { ...common, count, sum: Number(count) * 0.08, min: 0.0017, max: 4.81, explicitBounds: BOUNDS, bucketCounts }
}

function pointAttributes(i: number) {
  return [
    text('http.request.method', METHODS[i % METHODS.length] as string),
    text('http.route', ROUTES[i % ROUTES.length] as string),
    int('http.response.status_code', i % 7 === 0 ? 500n : 200n),
    text('server.address', `shop-${i}.example.com`),
  ]
}
