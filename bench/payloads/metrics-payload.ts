import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import type { MetricSchema } from '../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'

/** Options of `metricsPayload`. */
interface MetricsPayloadOptions {
  points: number
  /** Series of each metric, with one point each. */
  pointsPerMetric: number
  service?: string
  /** `service.instance.id`. Another instance has other series. */
  instance?: string
  timeUnixNano?: bigint
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
}: MetricsPayloadOptions): Buffer {
  const metrics: MessageInitShape<typeof MetricSchema>[] = []
  for (let sent = 0; sent < points; sent += pointsPerMetric) {
    const series = Array.from({ length: Math.min(pointsPerMetric, points - sent) }, (_, i) => i)
    metrics.push(metric(metrics.length, series, timeUnixNano))
  }
  const request = create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: [
      {
        resource: { attributes: resourceAttributes(service, instance) },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        scopeMetrics: [{ scope: { name: '@opentelemetry/instrumentation-http', version: '0.205.0' }, metrics }],
      },
    ],
  })
  return Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
}

function metric(index: number, series: number[], timeUnixNano: bigint): MessageInitShape<typeof MetricSchema> {
  const common = (i: number) => ({
    attributes: pointAttributes(i),
    startTimeUnixNano: timeUnixNano - 3_600_000_000_000n,
    timeUnixNano,
  })
  const describe = (name: string, unit: string) => ({
    name: `${name}.${index}`,
    description: `What the service has counted as ${name}.`,
    unit,
  })
  switch (index % 8) {
    case 0:
    case 4: {
      const dataPoints = series.map(i => histogramPoint(i, common(i)))
      const value = { aggregationTemporality: 2, dataPoints }
      return { ...describe('http.server.request.duration', 's'), data: { case: 'histogram', value } }
    }
    case 1:
    case 3:
    case 6: {
      const dataPoints = series.map(i => ({ ...common(i), value: { case: 'asInt' as const, value: BigInt(i * 7919) } }))
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

function histogramPoint<T>(i: number, common: T) {
  const bucketCounts = Array.from({ length: BOUNDS.length + 1 }, (_, bucket) => BigInt((i * bucket * 31) % 500))
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

function resourceAttributes(service: string, instance: string) {
  return [
    text('service.name', service),
    text('service.version', '2.14.3'),
    text('service.instance.id', `0f7c1b1e-8d4f-4f0e-9a57-${instance}`),
    text('deployment.environment.name', 'production'),
    text('host.name', 'ip-10-12-33-7.eu-central-1.compute.internal'),
    int('process.pid', 31_337n),
    text('process.runtime.name', 'nodejs'),
    text('process.runtime.version', '22.20.0'),
    text('telemetry.sdk.language', 'nodejs'),
    text('telemetry.sdk.version', '2.1.0'),
  ]
}

function text(key: string, value: string) {
  return { key, value: { value: { case: 'stringValue' as const, value } } }
}

function int(key: string, value: bigint) {
  return { key, value: { value: { case: 'intValue' as const, value } } }
}
