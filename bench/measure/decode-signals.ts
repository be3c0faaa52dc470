import { type DescMessage, fromBinary } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { otlpJson } from '../../test/support/payloads/otlp-json.ts'
import { createLogsBatch } from '../../workers/otlp/logs/logs.ts'
import { createMetricsBatch } from '../../workers/otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../../workers/otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { logPayload } from '../payloads/log-payload.ts'
import { metricsPayload } from '../payloads/metrics-payload.ts'
import { tracePayload } from '../payloads/trace-payload.ts'

/** A signal with its payloads and the product's decoder. */
export interface Signal {
  readonly name: 'traces' | 'logs' | 'metrics'
  /** Noun of the records: spans, records, points. */
  readonly noun: string
  /** Creates a protobuf payload with this many records. */
  payload(count: number): Buffer
  /** A payload with the same number of records of a kind that costs more. */
  readonly costlier: { readonly name: string; payload(count: number): Buffer }
  /** Decodes a payload into objects and writes them as JSON, with the library for protobuf. */
  toJson(body: Buffer): Buffer
  createBatch(): OtlpBatch
  /** Facts about the payloads that a reader needs, besides their size. */
  readonly note: string
}

const jsonBy = (schema: DescMessage) => (body: Buffer) => otlpJson(schema, fromBinary(schema, body))

/** All signals, in the order of the report. */
export const SIGNALS: readonly Signal[] = [
  {
    name: 'traces',
    noun: 'spans',
    payload: spans => tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 0 }),
    costlier: {
      name: 'every tenth with an exception',
      payload: spans => tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 10 }),
    },
    toJson: jsonBy(ExportTraceServiceRequestSchema),
    createBatch: createSpansBatch,
    note: 'ten resource attributes, eight of each span',
  },
  {
    name: 'logs',
    noun: 'records',
    payload: records => logPayload({ records, exceptionEvery: 0 }),
    costlier: {
      name: 'every tenth with an exception',
      payload: records => logPayload({ records, exceptionEvery: 10 }),
    },
    toJson: jsonBy(ExportLogsServiceRequestSchema),
    createBatch: createLogsBatch,
    note: 'ten resource attributes, five of each record',
  },
  {
    name: 'metrics',
    noun: 'points',
    payload: points => metricsPayload({ points, pointsPerMetric: 10 }),
    costlier: {
      name: 'one a metric',
      payload: points => metricsPayload({ points, pointsPerMetric: 1 }),
    },
    toJson: jsonBy(ExportMetricsServiceRequestSchema),
    createBatch: createMetricsBatch,
    note: 'ten points a metric, a quarter of them histograms of fifteen buckets; ten resource attributes, four of each point',
  },
]
