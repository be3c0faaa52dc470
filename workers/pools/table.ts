import type { Redis } from 'ioredis'
import { type ClickHouseClient, insertNative } from '../../clickhouse/client.ts'
import { type QueueName, SIGNAL_QUEUES, type Signal } from '../../schemas/queues/names.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createBatchPool } from '../batch/batch-pool.ts'
import type { RowBatch } from '../batch/row-batch.ts'
import { createBatchStorer } from '../batch/store-batch.ts'
import type { WorkersConfig } from '../config.ts'
import { storeDeadLetters } from '../dead-letters/store-dead-letters.ts'
import { createRecentStacks } from '../exceptions/stack-requests.ts'
import type { WorkerMetrics } from '../metrics.ts'
import { acceptJson } from '../otlp/json/accept-json.ts'
import { createJsonTranscoder } from '../otlp/json/transcode-json.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { createMetricsBatch } from '../otlp/metrics/metrics.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import type { PayloadReader } from '../queue/payload-reader.ts'
import { createPayloadStore, type NewPayload } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { storeReplay } from '../replay/store-replay.ts'
import { createBuildReportsBatch } from '../rows/build-reports-batch.ts'
import { createReceiptsBatch } from '../rows/receipts-batch.ts'
import { createReplayChunksBatch } from '../rows/replay-chunks-batch.ts'
import { createSessionsBatch } from '../rows/sessions-batch.ts'
import { startCompletionsPool } from './start-completions-pool.ts'
import { startSourceMapsPool } from './start-source-maps-pool.ts'
import { startSymbolicationPool } from './start-symbolication-pool.ts'

export interface PoolsDeps {
  readonly config: WorkersConfig
  readonly redis: Redis
  readonly payloads: PayloadReader
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  readonly addJobs: (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>
  readonly logger: Logger
  readonly metrics: WorkerMetrics
  readonly stopping: AbortSignal
}

/** A commit of the edge holds 4 MiB of requests as sent, or one larger; compressed ones may hold a thousand times that. */
const MAX_JOB_DECODED_BYTES = 128 * 1024 * 1024

/** Which pool consumes which queue. */
export const POOLS: Record<QueueName, (deps: PoolsDeps) => Pool> = {
  spans: deps => {
    const recentStacks = createRecentStacks()
    return startSignalPool('traces', () => createSpansBatch(recentStacks), deps)
  },
  logs: deps => {
    const recentStacks = createRecentStacks()
    return startSignalPool('logs', () => createLogsBatch(recentStacks), deps)
  },
  metrics: deps => startSignalPool('metrics', createMetricsBatch, deps),
  sessions: deps => startRowsPool('sessions', 'sessions', createSessionsBatch, deps),
  replay: startReplayPool,
  'replay-chunks': deps => startRowsPool('replay-chunks', 'replay', createReplayChunksBatch, deps),
  'source-maps': startSourceMapsPool,
  completions: startCompletionsPool,
  'build-reports': deps => startRowsPool('build-reports', 'build-reports', createBuildReportsBatch, deps),
  symbolication: startSymbolicationPool,
  receipts: deps => startRowsPool('receipts', undefined, createReceiptsBatch, deps),
  'dead-letters': startDeadLettersPool,
}

function startSignalPool(signal: Signal, createRows: () => RowBatch, deps: PoolsDeps): Pool {
  const transcoder = createJsonTranscoder()
  return startRowsPool(SIGNAL_QUEUES[signal], signal, () => acceptJson(signal, createRows(), transcoder), deps)
}

/**
 * A pool that decodes payloads into rows and inserts them in named batches; `signal` is their name in the log of batches,
 * where they are told of.
 */
function startRowsPool(
  queue: QueueName,
  signal: string | undefined,
  createRows: () => RowBatch,
  deps: PoolsDeps,
): Pool {
  const { config, logger, metrics } = deps
  const store = createPayloadStore(deps.redis, queue, deps.payloads)
  const storer = createBatchStorer({
    queue,
    signal,
    store,
    insert: (block, token) =>
      insertNative(deps.clickhouse, {
        table: block.table,
        columns: block.columns,
        block: block.block,
        deduplicationToken: token,
        timeoutMs: config.INSERT_TIMEOUT_MS,
        signal: deps.stopping,
      }),
    addJobs: deps.addJobs,
    logger,
    stopping: deps.stopping,
    onStored: (batch, insertMs) => metrics.observeBatch(queue, batch, insertMs),
    onAttempt: () => pool.progress(),
  })
  const batches = createBatchPool(
    { queue, signal, store, storer, createRows, logger },
    {
      maxRows: config.BATCH_MAX_ROWS,
      maxBytes: config.BATCH_MAX_BYTES,
      maxAgeMs: config.BATCH_MAX_AGE_MS,
      maxConcurrentInserts: config.BATCH_CONCURRENT_INSERTS,
      maxFetchedBytes: config.POOL_FETCHED_BYTES,
      maxJobDecodedBytes: MAX_JOB_DECODED_BYTES,
    },
  )
  const pool = startPool(
    queue,
    { redisUrl: config.REDIS_URL, logger, process: batches.process, onClosing: batches.flush },
    poolOptions(config, config.POOL_CONCURRENCY),
  )
  return pool
}

/** A pool that checks replay chunks and puts them into the object store. */
function startReplayPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const replay = {
    objects: deps.objects,
    store: createPayloadStore(deps.redis, 'replay'),
    held: new Budget(config.REPLAY_HELD_BYTES),
    addJobs: deps.addJobs,
    logger,
    stopping: deps.stopping,
    onAttempt: () => pool.progress(),
    onStored: deps.metrics.observeReplayJob,
  }
  const pool = startPool(
    'replay',
    { redisUrl: config.REDIS_URL, logger, process: (job, payloadBytes) => storeReplay(replay, job, payloadBytes) },
    poolOptions(config, config.REPLAY_CONCURRENCY),
  )
  return pool
}

function startDeadLettersPool(deps: PoolsDeps): Pool {
  const { config, logger, objects } = deps
  const store = createPayloadStore(deps.redis, 'dead-letters')
  const letters = { objects, store, onStored: () => pool.progress() }
  const pool = startPool(
    'dead-letters',
    { redisUrl: config.REDIS_URL, logger, process: job => storeDeadLetters(letters, job.jobId) },
    poolOptions(config, 2),
  )
  return pool
}

function poolOptions(config: WorkersConfig, concurrency: number) {
  return { concurrency, lockMs: config.JOB_LOCK_MS, stalledCheckMs: config.JOB_STALLED_CHECK_MS }
}
