import { burnToken } from '../../clickhouse/burn-token.ts'
import { insertNative } from '../../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../../clickhouse/cluster/shard-units.ts'
import { type Lane, lanesOf } from '../../shared/queue/queue.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { FETCHED_BYTES } from '../queue/payloads/payload-reader.ts'
import type { Pool } from '../queue/pool.ts'
import { CONDEMN_AFTER } from '../queue/repeated-failures.ts'
import type { BatchSource } from '../sink/batch.ts'
import { JOB_LIMITS } from '../sink/job-limits.ts'
import { InsertPace, LONGEST_WAIT } from '../sink/pace/insert-pace.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { type RowsPlan, startBatches } from './start-batches.ts'

/**
 * Times of `BATCH_MAX_AGE_MS` between two inserts of a lane. Surfaces of the bulk lane have work waiting anyway, and batches of
 * twice the size cost ClickHouse less (docs/decisions/028-insert-pace.md).
 */
const INTERVALS: Readonly<Record<Lane, number>> = { express: 1, bulk: 2 }

/** Rest of a lane between two jobs, as a share of the time between two inserts. By so much later a request may be stored. */
const REST = 0.2

/** Inserts of a lane at a time. */
const CONCURRENT_INSERTS = 2

/** Jobs of a lane in progress. */
export const CONCURRENT_JOBS = 256

/**
 * Starts a pool that decodes payloads into rows and inserts the rows into ClickHouse in named batches. `slowness` multiplies the
 * time between two inserts. A batch with `maxJobs` is full, since the pool takes no more while all that it has taken wait in it.
 */
export function startRowsPool(
  { queue, kind }: Pick<BatchSource, 'queue' | 'kind'>,
  createRows: () => RowBatch,
  deps: PoolsDeps,
  slowness = 1,
  maxJobs = Number.POSITIVE_INFINITY,
): Pool {
  const { config, metrics } = deps
  const plan: RowsPlan = {
    ...{ queue, kind, createRows, lanes: lanesOf(queue) },
    ...clickhouseInserts(deps),
    paceOf: lane =>
      new InsertPace(deps, { queue, lane, intervalMs: slowness * INTERVALS[lane] * config.BATCH_MAX_AGE_MS }),
    condemnAfter: CONDEMN_AFTER,
    onJobDecoded: metrics.decodeObserver(queue),
    options: {
      maxRows: config.BATCH_MAX_ROWS,
      maxBytes: config.BATCH_MAX_BYTES,
      maxJobs,
      maxConcurrentInserts: CONCURRENT_INSERTS,
      maxWaitMs: LONGEST_WAIT * slowness * config.BATCH_MAX_AGE_MS,
      maxFetchedBytes: FETCHED_BYTES,
      jobLimits: JOB_LIMITS,
    },
  }
  const options = { ...poolOptions(config, CONCURRENT_JOBS), restMs: REST * config.BATCH_MAX_AGE_MS }
  return startBatches(plan, deps, options).pool
}

/** Inserts blocks into ClickHouse. */
export function clickhouseInserts({
  clickhouse,
  config,
  metrics,
  stopping,
}: Pick<PoolsDeps, 'clickhouse' | 'config' | 'metrics' | 'stopping'>): Pick<
  RowsPlan,
  'activeShards' | 'insert' | 'burnToken'
> {
  const { shards } = clickhouse
  const timeoutMs = config.INSERT_TIMEOUT_MS
  return {
    activeShards: shards && (() => shards.active()),
    insert: async ({ table: unit, columns, block }, deduplicationToken) => {
      const table = tableOfUnit(unit)
      const insert = { table, columns, block, deduplicationToken, timeoutMs, signal: stopping }
      await onShardOfUnit(clickhouse, unit, shard => insertNative(shard, insert))
      metrics.observeInsert(table)
    },
    burnToken: (unit, deduplicationToken, days) =>
      onShardOfUnit(clickhouse, unit, shard =>
        burnToken(shard, { table: tableOfUnit(unit), deduplicationToken, days, timeoutMs }),
      ),
  }
}
