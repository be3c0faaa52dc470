import type { PoolName, Signal } from '../../schemas/queues/names.ts'
import type { PoolsDeps } from '../deps.ts'
import { ruledRecords } from '../dropping/ruled-records.ts'
import {
  createBuildReportsBatch,
  createDeadLettersBatch,
  createReceiptsBatch,
  createReplayChunksBatch,
  createSessionsBatch,
} from '../json-rows.ts'
import { acceptJson, createJsonTranscoder } from '../otlp/json/transcode-json.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { createMetricsBatch } from '../otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import type { Pool } from '../queue/pool.ts'
import { startCompletionsPool } from './start-completions.ts'
import { startDeadLettersPool } from './start-dead-letters.ts'
import { startDeliveriesPool } from './start-deliveries.ts'
import { startExceptionsPool } from './start-exceptions.ts'
import { startReplayPool } from './start-replay.ts'
import { startRowsPool } from './start-rows.ts'
import { startSourceMapsPool } from './start-source-maps.ts'
import { startSpanStatsPool } from './start-span-stats.ts'
import { startSymbolicationPool } from './start-symbolication.ts'

/** The pools by their names, which are those of the queues that they consume. */
export const POOLS: Record<PoolName, (deps: PoolsDeps) => Pool> = {
  traces: deps => startSignalPool('traces', createSpansBatch, deps),
  logs: deps => startSignalPool('logs', createLogsBatch, deps),
  metrics: deps => startSignalPool('metrics', createMetricsBatch, deps),
  sessions: deps =>
    startRowsPool({ queue: 'sessions', kind: 'sessions' }, () => createSessionsBatch(deps.scrubbing), deps),
  replay: startReplayPool,
  'replay-chunks': deps => startRowsPool({ queue: 'replay-chunks', kind: 'replay' }, createReplayChunksBatch, deps),
  'source-maps': startSourceMapsPool,
  completions: startCompletionsPool,
  'build-reports': deps =>
    startRowsPool({ queue: 'build-reports', kind: 'build-reports' }, createBuildReportsBatch, deps),
  exceptions: startExceptionsPool,
  'span-stats': startSpanStatsPool,
  symbolication: startSymbolicationPool,
  receipts: deps => startRowsPool({ queue: 'receipts', kind: undefined }, createReceiptsBatch, deps),
  'dead-letters': startDeadLettersPool,
  'dead-letter-index': deps =>
    startRowsPool({ queue: 'dead-letter-index', kind: undefined }, createDeadLettersBatch, deps),
  deliveries: startDeliveriesPool,
}

/** Starts the pool of an OTLP signal, which accepts protobuf and JSON. */
function startSignalPool(signal: Signal, createRows: () => OtlpBatch, deps: PoolsDeps): Pool {
  const transcoder = createJsonTranscoder()
  const create = () => {
    const rows = createRows()
    return ruledRecords(acceptJson(signal, rows, transcoder), rows, deps)
  }
  return startRowsPool({ queue: signal, kind: signal }, create, deps)
}
