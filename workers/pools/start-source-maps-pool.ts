import { Budget } from '../../shared/concurrency/budget.ts'
import { createPayloadStore } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { storeSourceMaps } from '../source-maps/store-source-maps.ts'
import type { PoolsDeps } from './table.ts'

/** A pool that puts parts and whole source maps into the object store. */
export function startSourceMapsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const uploads = {
    ...deps,
    store: createPayloadStore(deps.redis, 'source-maps'),
    held: new Budget(config.SOURCE_MAPS_HELD_BYTES),
    onAttempt: () => pool.progress(),
    onUpload: deps.metrics.observeSourceMap,
  }
  const pool = startPool(
    'source-maps',
    { redisUrl: config.REDIS_URL, logger, process: (job, bytes) => storeSourceMaps(uploads, job, bytes) },
    {
      concurrency: config.SOURCE_MAPS_CONCURRENCY,
      lockMs: config.JOB_LOCK_MS,
      stalledCheckMs: config.JOB_STALLED_CHECK_MS,
    },
  )
  return pool
}
