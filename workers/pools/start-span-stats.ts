import { MINUTE_MS } from '../../schemas/units.ts'
import type { PoolsDeps } from '../deps.ts'
import type { Pool } from '../queue/pool.ts'
import { ExpressFirst } from '../sink/pace/express-first.ts'
import { createSpanStatsBatch } from '../span-stats/stats-batch.ts'
import { CONCURRENT_JOBS, startRowsPool } from './start-rows.ts'

/**
 * Time between two inserts of all workers together, so that each of five stores once a minute. A batch waits for four of these, in
 * the bulk lane for eight: less than the two minutes after which a pool that attempts nothing is taken for wedged
 * (workers/liveness.ts).
 */
const INTERVAL_MS = MINUTE_MS / 5

/**
 * Starts the pool that stores the statistics of spans, up to a minute after their batch: a row has the spans of a minute, and an
 * insert of a few rows costs ClickHouse as much as one of many.
 */
export function startSpanStatsPool(deps: PoolsDeps): Pool {
  const ownTurn = { ...deps, expressFirst: new ExpressFirst() }
  const slowness = INTERVAL_MS / deps.config.BATCH_MAX_AGE_MS
  return startRowsPool(
    { queue: 'span-stats', kind: undefined },
    createSpanStatsBatch,
    ownTurn,
    slowness,
    CONCURRENT_JOBS / 2,
  )
}
