import { gzipSync } from 'node:zlib'
import { TraceFlags } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer'
import { BatchLogRecordProcessor, type LogRecordProcessor, type ReadableLogRecord } from '@opentelemetry/sdk-logs'
import { PeriodicExportingMetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node'
import { BatchSpanProcessor, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace'
import { createPendingRecords, tracked } from './pending-records.ts'
import type { Destination, Settings } from './read-settings.ts'
import type { Request } from './send-blocking.ts'

type Environment = Readonly<Record<string, string | undefined>>
type OnFailure = (error: Error | undefined) => void

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
  const points = metrics && createMetricPipeline(metrics, env)
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
  const exporter = tracked(new OTLPTraceExporter(exporterOptions(destination)), pending, onFailure)
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
    takeRequests: () =>
      batchesOf(pending.take()).flatMap(batch =>
        requestOf(destination, ProtobufTraceSerializer.serializeRequest(batch)),
      ),
  }
}

function createLogPipeline(destination: Destination, env: Environment, onFailure: OnFailure) {
  const limits = limitsOf(env, 'OTEL_BLRP', 1_000)
  const pending = createPendingRecords<ReadableLogRecord>(limits.maxQueueSize + limits.maxExportBatchSize)
  const exporter = tracked(new OTLPLogExporter(exporterOptions(destination)), pending, onFailure)
  const tracker: LogRecordProcessor = {
    onEmit: record => pending.add(record),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  return {
    processors: [tracker, new BatchLogRecordProcessor({ exporter, ...limits })],
    takeRequests: () =>
      batchesOf(pending.take()).flatMap(batch =>
        requestOf(destination, ProtobufLogsSerializer.serializeRequest(batch)),
      ),
  }
}

function createMetricPipeline(destination: Destination, env: Environment) {
  const exportIntervalMillis = numberOf(env.OTEL_METRIC_EXPORT_INTERVAL, 60_000)
  const exportTimeoutMillis = Math.min(numberOf(env.OTEL_METRIC_EXPORT_TIMEOUT, 30_000), exportIntervalMillis)
  const exporter = new OTLPMetricExporter(exporterOptions(destination))
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
      return requestOf(destination, ProtobufMetricsSerializer.serializeRequest(metrics))
    },
  }
}

function exporterOptions({ url, headers, isCompressed }: Destination) {
  return { url, headers, compression: isCompressed ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE }
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

function requestOf({ url, headers, isCompressed }: Destination, body: Uint8Array | undefined): Request[] {
  if (body === undefined) return []
  const type = { ...headers, 'content-type': 'application/x-protobuf' }
  if (!isCompressed) return [{ url, headers: type, body }]
  return [{ url, headers: { ...type, 'content-encoding': 'gzip' }, body: gzipSync(body) }]
}
