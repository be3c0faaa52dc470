import type { QueueName, Signal } from '../../schemas/queues/names.ts'
import type { PoolsDeps } from '../deps.ts'
import { createExceptionsBatch } from '../exceptions/exceptions-batch.ts'
import { createRecentStacks } from '../exceptions/stack-requests.ts'
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
import { createSpansBatch } from '../otlp/traces/spans.ts'
import type { Pool } from '../queue/pool.ts'
import { ExpressFirst } from '../sink/pace/express-first.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { startCompletionsPool } from './start-completions.ts'
import { startDeadLettersPool } from './start-dead-letters.ts'
import { startReplayPool } from './start-replay.ts'
import { startRowsPool } from './start-rows.ts'
import { startSourceMapsPool } from './start-source-maps.ts'
import { startSymbolicationPool } from './start-symbolication.ts'

/** Times of `BATCH_MAX_AGE_MS` between two inserts of exceptions. */
const EXCEPTIONS_INTERVAL = 4

/** The pool that consumes each queue. */
export const POOLS: Record<QueueName, (deps: PoolsDeps) => Pool> = {
  traces: deps => startSignalPool('traces', createSpansBatch, deps),
  logs: deps => startSignalPool('logs', createLogsBatch, deps),
  metrics: deps => startSignalPool('metrics', createMetricsBatch, deps),
  sessions: deps => startRowsPool({ queue: 'sessions', kind: 'sessions' }, createSessionsBatch, deps),
  replay: startReplayPool,
  'replay-chunks': deps => startRowsPool({ queue: 'replay-chunks', kind: 'replay' }, createReplayChunksBatch, deps),
  'source-maps': startSourceMapsPool,
  completions: startCompletionsPool,
  'build-reports': deps =>
    startRowsPool({ queue: 'build-reports', kind: 'build-reports' }, createBuildReportsBatch, deps),
  exceptions: startExceptionsPool,
  symbolication: startSymbolicationPool,
  receipts: deps => startRowsPool({ queue: 'receipts', kind: undefined }, createReceiptsBatch, deps),
  'dead-letters': startDeadLettersPool,
  'dead-letter-index': deps =>
    startRowsPool({ queue: 'dead-letter-index', kind: undefined }, createDeadLettersBatch, deps),
}

/**
 * Exceptions are stored in batches of about a second, because an insert of them makes parts of seven tables. They follow their
 * records in either lane, so that the bulk lanes do not give way to them.
 */
function startExceptionsPool(deps: PoolsDeps): Pool {
  const recentStacks = createRecentStacks()
  const source = { queue: 'exceptions', kind: 'exceptions' } as const
  const ownTurn = { ...deps, expressFirst: new ExpressFirst() }
  return startRowsPool(source, () => createExceptionsBatch(recentStacks), ownTurn, EXCEPTIONS_INTERVAL)
}

/** Starts the pool of an OTLP signal, which accepts protobuf and JSON. */
function startSignalPool(signal: Signal, createRows: () => RowBatch, deps: PoolsDeps): Pool {
  const transcoder = createJsonTranscoder()
  return startRowsPool({ queue: signal, kind: signal }, () => acceptJson(signal, createRows(), transcoder), deps)
}
