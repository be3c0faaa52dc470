import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { attributes, resource, scope, text, uint32, uint64 } from './otlp-values.ts'

const EDGE_DOUBLES = [0, -0, 1, -1, 0.1, 5e-324, Number.MAX_VALUE, 2 ** 53, NaN, Infinity, -Infinity]

const double = fc.oneof(fc.constantFrom(...EDGE_DOUBLES), fc.double())
const int64 = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
)
const int32 = fc.oneof(fc.constantFrom(0, 1, -1, 63, -64, 64, 2 ** 31 - 1, -(2 ** 31)), fc.integer())
const temporality = fc.oneof(
  { weight: 5, arbitrary: fc.nat(2) },
  { weight: 1, arbitrary: fc.constantFrom(3, 99, -1, 2 ** 31 - 1) },
)
const number = fc.oneof(
  double.map(value => ({ case: 'asDouble' as const, value })),
  int64.map(value => ({ case: 'asInt' as const, value })),
  fc.constant({ case: undefined }),
)
const id = (length: number) =>
  fc.oneof(fc.uint8Array({ minLength: length, maxLength: length }), fc.uint8Array({ maxLength: 20 }))

const exemplar = fc.record(
  { timeUnixNano: uint64, value: number, spanId: id(8), traceId: id(16), filteredAttributes: attributes },
  { requiredKeys: [] },
)
const common = {
  attributes,
  startTimeUnixNano: uint64,
  timeUnixNano: uint64,
  flags: fc.oneof(fc.constantFrom(0, 1), uint32),
}
const exemplars = fc.oneof(fc.constant([]), fc.array(exemplar, { maxLength: 3 }))
const distribution = { ...common, count: uint64, sum: double }

const numberPoint = fc.record({ ...common, value: number, exemplars }, { requiredKeys: [] })

/** Counts of buckets, mostly as many as the bounds require, or none. */
const buckets = fc
  .record({
    explicitBounds: fc.array(double, { maxLength: 20 }),
    counts: fc.array(uint64, { minLength: 21, maxLength: 21 }),
    excess: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(-30, 0, 2) }),
  })
  .map(({ explicitBounds, counts, excess }) => ({
    explicitBounds,
    bucketCounts: counts.slice(0, Math.max(0, explicitBounds.length + excess)),
  }))
const histogramPoint = fc
  .tuple(fc.record({ ...distribution, min: double, max: double, exemplars }, { requiredKeys: [] }), buckets)
  .map(([point, counts]) => ({ ...point, ...counts }))

const exponentialBuckets = fc.record(
  { offset: int32, bucketCounts: fc.array(uint64, { maxLength: 40 }) },
  { requiredKeys: [] },
)
const exponentialHistogramPoint = fc.record(
  {
    ...distribution,
    min: double,
    max: double,
    exemplars,
    scale: int32,
    zeroCount: uint64,
    zeroThreshold: double,
    positive: exponentialBuckets,
    negative: exponentialBuckets,
  },
  { requiredKeys: [] },
)
const summaryPoint = fc.record(
  {
    ...distribution,
    quantileValues: fc.array(fc.record({ quantile: double, value: double }, { requiredKeys: [] }), { maxLength: 4 }),
  },
  { requiredKeys: [] },
)

const points = <T>(point: fc.Arbitrary<T>) => fc.array(point, { maxLength: 4 })
const data = fc.oneof(
  { weight: 2, arbitrary: fc.record({ dataPoints: points(numberPoint) }).map(value => ({ case: 'gauge', value })) },
  {
    weight: 3,
    arbitrary: fc
      .record({ dataPoints: points(numberPoint), aggregationTemporality: temporality, isMonotonic: fc.boolean() })
      .map(value => ({ case: 'sum', value })),
  },
  {
    weight: 3,
    arbitrary: fc
      .record({ dataPoints: points(histogramPoint), aggregationTemporality: temporality })
      .map(value => ({ case: 'histogram', value })),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({ dataPoints: points(exponentialHistogramPoint), aggregationTemporality: temporality })
      .map(value => ({ case: 'exponentialHistogram', value })),
  },
  { weight: 2, arbitrary: fc.record({ dataPoints: points(summaryPoint) }).map(value => ({ case: 'summary', value })) },
  { weight: 1, arbitrary: fc.constant({ case: undefined }) },
)
const metric = fc.record(
  { name: text, description: text, unit: text, metadata: attributes, data },
  { requiredKeys: ['data'] },
)

/** Generates random ExportMetricsServiceRequest messages. */
export const metricsRequest: fc.Arbitrary<ExportMetricsServiceRequest> = fc
  .array(
    fc.record(
      {
        resource,
        schemaUrl: text,
        scopeMetrics: fc.array(
          fc.record(
            { scope, schemaUrl: text, metrics: fc.array(metric, { maxLength: 4 }) },
            { requiredKeys: ['metrics'] },
          ),
          { maxLength: 2 },
        ),
      },
      { requiredKeys: ['scopeMetrics'] },
    ),
    { maxLength: 2 },
  )
  .map(resourceMetrics => create(ExportMetricsServiceRequestSchema, { resourceMetrics } as never))
