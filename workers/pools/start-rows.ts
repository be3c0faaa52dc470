import { burnToken } from '../../clickhouse/burn-token.ts'
import { insertNative } from '../../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../../clickhouse/cluster/shard-units.ts'
import { type Lane, lanesOf } from '../../shared/queue/queue.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { SurfacePrices } from '../queue/payloads/surface-prices.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import type { BatchSource } from '../sink/batch.ts'
import { BatchPool } from '../sink/batch-pool.ts'
import { JOB_LIMITS } from '../sink/job-limits.ts'
import { LaneResources } from '../sink/lane-resources.ts'
import { InsertPace, LONGEST_WAIT } from '../sink/pace/insert-pace.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { BatchStorer, type BatchStorerDeps } from '../sink/store-batch.ts'
import { perPartition } from './per-partition.ts'

/**
 * Times of `BATCH_MAX_AGE_MS` between two inserts of a lane. Surfaces of the bulk lane have work waiting anyway, and batches of
 * twice the size cost ClickHouse less (docs/decisions/028-insert-pace.md).
 */
const INTERVALS: Readonly<Record<Lane, number>> = { express: 1, bulk: 2 }

/** Rest of a lane between two jobs, as a share of the time between two inserts. By so much later a request may be stored. */
const REST = 0.2

/** Starts a pool that decodes payloads into rows and inserts the rows in named batches. */
export function startRowsPool(
  { queue, kind }: Omit<BatchSource, 'letterQuota'>,
  createRows: () => RowBatch,
  deps: PoolsDeps,
): Pool {
  const { config, logger, metrics, stopping } = deps
  const { clickhouse } = deps
  const { shards } = clickhouse
  const activeShards = shards && (() => shards.active())
  const source: BatchSource = { queue, kind, letterQuota: deps.letterQuota, activeShards }
  const prices = new SurfacePrices(queue, deps)
  const inserts: Omit<BatchStorerDeps, 'store' | 'addJobs'> = {
    ...source,
    insert: async ({ table: unit, columns, block }, deduplicationToken) => {
      const timing = { timeoutMs: config.INSERT_TIMEOUT_MS, signal: stopping }
      const table = tableOfUnit(unit)
      await onShardOfUnit(clickhouse, unit, shard =>
        insertNative(shard, { table, columns, block, deduplicationToken, ...timing }),
      )
      metrics.observeInsert(table)
    },
    burnToken: (unit, deduplicationToken, days) => {
      const timeoutMs = config.INSERT_TIMEOUT_MS
      const insert = { table: tableOfUnit(unit), deduplicationToken, days, timeoutMs }
      return onShardOfUnit(clickhouse, unit, shard => burnToken(shard, insert))
    },
    failures: metrics.watchFailures(queue, new RepeatedFailures()),
    logger,
    stopping,
    onStored: (batch, insertMs) => metrics.observeBatch(queue, batch, insertMs),
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
  }
  const onJobDecoded = metrics.decodeObserver(queue)
  const options = {
    maxRows: config.BATCH_MAX_ROWS,
    maxBytes: config.BATCH_MAX_BYTES,
    maxConcurrentInserts: config.BATCH_CONCURRENT_INSERTS,
    maxWaitMs: LONGEST_WAIT * config.BATCH_MAX_AGE_MS,
    maxFetchedBytes: config.POOL_FETCHED_BYTES,
    jobLimits: JOB_LIMITS,
  }
  // Each lane has its own batches and insert slots, so that an express job waits for no insert of the bulk lane.
  const lanes = new Map(
    lanesOf(queue).map(lane => {
      const memory = { name: `${queue} ${lane}`, memory: deps.columnMemory, createRows }
      // The lanes of all partitions have one pace, because ClickHouse recognizes repeated inserts by their number.
      const pace = new InsertPace(deps, { queue, lane, intervalMs: INTERVALS[lane] * config.BATCH_MAX_AGE_MS })
      return [lane, { resources: new LaneResources(memory, options), pace }] as const
    }),
  )
  // A batch has jobs of one partition, because the script that names it uses keys of one.
  const batches: BatchPool[] = []
  const batchesOf = perPartition(partition => {
    const { redis, payloads, confirmed, addJobs, place } = deps.at(queue, partition)
    const store = new RedisPayloadStore(redis, queue, payloads, confirmed, place)
    const storer = new BatchStorer({ ...inserts, store, addJobs })
    const ofLanes = [...lanes].map(([lane, { resources, pace }]) => {
      const pool = new BatchPool(
        {
          ...source,
          store,
          storer,
          createRows,
          logger,
          lane,
          memory: deps.columnMemory,
          resources,
          expressFirst: deps.expressFirst,
          pace,
          onJobDecoded,
          onDecoded: (frame, decodedBytes, decodeMs) => prices.observe(frame, decodedBytes, decodeMs),
        },
        options,
      )
      batches.push(pool)
      return [lane, pool] as const
    })
    return new Map<Lane, BatchPool>(ofLanes)
  })
  const pool = startPool(
    queue,
    {
      servers: deps.servers,
      logger,
      partitions: deps.partitions,
      process: (job, partition) => (batchesOf(partition).get(job.lane) as BatchPool).process(job),
      onClosing: () => {
        prices.stop()
        for (const batch of batches) batch.close()
      },
    },
    { ...poolOptions(config, config.POOL_CONCURRENCY), restMs: REST * config.BATCH_MAX_AGE_MS },
  )
  return pool
}
