import { TraceFlags } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer'
import { BatchLogRecordProcessor, type LogRecordProcessor, type ReadableLogRecord } from '@opentelemetry/sdk-logs'
import { PeriodicExportingMetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node'
import { BatchSpanProcessor, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace'
import { createExporter, createRecordExporter } from './create-exporter.ts'
import { createPendingRecords } from './pending-records.ts'
import type { Destination, Settings } from './read-settings.ts'
import type { Request } from './send-blocking.ts'

type Environment = Readonly<Record<string, string | undefined>>
type OnFailure = (error: Error) => void

const MAX_QUEUED = 2_048
const MAX_IN_BATCH = 512

interface Pipelines {
  readonly configuration: Partial<NodeSDKConfiguration>
  /** Whether every signal is sent here, and none by exporters that only the SDK knows. */
  readonly isComplete: boolean
  /** Reads the metrics once more, for `takeRequests`. */
  collect(): Promise<void>
  /** Returns the requests that send everything which is not sent yet. */
  takeRequests(): Request[]
}

/** Creates processors and exporters for the signals with a destination. The SDK creates the others from the environment. */
export function createPipelines(
  destinations: Settings['destinations'],
  env: Environment,
  onFailure: OnFailure,
): Pipelines {
  const { traces, logs, metrics } = destinations
  const spans = traces && createSpanPipeline(traces, env, onFailure)
  const records = logs && createLogPipeline(logs, env, onFailure)
  const points = metrics && createMetricPipeline(metrics, env, onFailure)
  return {
    configuration: {
      ...(spans && { spanProcessors: spans.processors }),
      ...(records && { logRecordProcessors: records.processors }),
      ...(points && { metricReaders: [points.reader] }),
    },
    isComplete: spans !== undefined && records !== undefined && points !== undefined,
    collect: async () => points?.collect(),
    takeRequests: () => [spans, records, points].flatMap(pipeline => pipeline?.takeRequests() ?? []),
  }
}

function createSpanPipeline(destination: Destination, env: Environment, onFailure: OnFailure) {
  const limits = limitsOf(env, 'OTEL_BSP', 5_000)
  const pending = createPendingRecords<ReadableSpan>(limits.maxQueueSize + limits.maxExportBatchSize)
  const serialize = (batch: ReadableSpan[]) => ProtobufTraceSerializer.serializeRequest(batch)
  const exporter = createRecordExporter({ destination, serialize, timeoutMs: timeoutOf(env), onFailure }, pending)
  const tracker: SpanProcessor = {
    onStart: () => undefined,
    onEnd: span => {
      if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0) pending.add(span)
    },
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  return {
    processors: [tracker, new BatchSpanProcessor({ exporter, ...limits })],
    takeRequests: () => batchesOf(pending.take()).flatMap(exporter.requestsOf),
  }
}

function createLogPipeline(destination: Destination, env: Environment, onFailure: OnFailure) {
  const limits = limitsOf(env, 'OTEL_BLRP', 1_000)
  const pending = createPendingRecords<ReadableLogRecord>(limits.maxQueueSize + limits.maxExportBatchSize)
  const serialize = (batch: ReadableLogRecord[]) => ProtobufLogsSerializer.serializeRequest(batch)
  const exporter = createRecordExporter({ destination, serialize, timeoutMs: timeoutOf(env), onFailure }, pending)
  const tracker: LogRecordProcessor = {
    onEmit: record => pending.add(record),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  return {
    processors: [tracker, new BatchLogRecordProcessor({ exporter, ...limits })],
    takeRequests: () => batchesOf(pending.take()).flatMap(exporter.requestsOf),
  }
}

function createMetricPipeline(destination: Destination, env: Environment, onFailure: OnFailure) {
  const exportIntervalMillis = numberOf(env.OTEL_METRIC_EXPORT_INTERVAL, 60_000)
  const exportTimeoutMillis = Math.min(numberOf(env.OTEL_METRIC_EXPORT_TIMEOUT, 30_000), exportIntervalMillis)
  const serialize = (batch: ResourceMetrics) => ProtobufMetricsSerializer.serializeRequest(batch)
  const background = createExporter({ destination, serialize, timeoutMs: timeoutOf(env), onFailure })
  // The exporter of the SDK reads from the environment how points add up.
  const exporter = Object.assign(new OTLPMetricExporter(), background)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis })
  let last: ResourceMetrics | undefined
  return {
    reader,
    async collect() {
      last = (await reader.collect()).resourceMetrics
    },
    takeRequests() {
      const metrics = last
      last = undefined
      if (metrics === undefined || metrics.scopeMetrics.length === 0) return []
      return background.requestsOf(metrics)
    },
  }
}

function timeoutOf(env: Environment): number {
  return numberOf(env.OTEL_EXPORTER_OTLP_TIMEOUT, 10_000)
}

function limitsOf(env: Environment, prefix: 'OTEL_BSP' | 'OTEL_BLRP', delayMs: number) {
  const maxQueueSize = numberOf(env[`${prefix}_MAX_QUEUE_SIZE`], MAX_QUEUED)
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(numberOf(env[`${prefix}_MAX_EXPORT_BATCH_SIZE`], MAX_IN_BATCH), maxQueueSize),
    scheduledDelayMillis: numberOf(env[`${prefix}_SCHEDULE_DELAY`], delayMs),
    exportTimeoutMillis: numberOf(env[`${prefix}_EXPORT_TIMEOUT`], 30_000),
  }
}

function numberOf(text: string | undefined, fallback: number): number {
  const value = Number(text)
  return Number.isFinite(value) && value > 0 ? value : fallback
}

function batchesOf<Item>(records: readonly Item[]): Item[][] {
  const count = Math.ceil(records.length / MAX_IN_BATCH)
  return Array.from({ length: count }, (_, i) => records.slice(i * MAX_IN_BATCH, (i + 1) * MAX_IN_BATCH))
}
