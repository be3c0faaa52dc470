import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { LaneBudget } from '../queue/lane-budget.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreSourceMapsDeps, storeSourceMaps } from '../source-maps/store-source-maps.ts'

/** Starts the pool that writes parts and whole source maps to the object store. */
export function startSourceMapsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const store = new RedisPayloadStore(deps.redis, 'source-maps')
  const uploads: StoreSourceMapsDeps = {
    redis: deps.redis,
    objects: deps.objects,
    releases: deps.releases,
    store,
    suspects: new Suspects(store, logger),
    failures: deps.metrics.watchFailures('source-maps', new RepeatedFailures()),
    held: new LaneBudget(config.SOURCE_MAPS_HELD_BYTES),
    addJobs: deps.addJobs,
    letterQuota: deps.letterQuota,
    logger,
    stopping: deps.stopping,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onUpload: deps.metrics.observeSourceMap,
  }
  const pool = startPool(
    'source-maps',
    { redisUrl: config.REDIS_URL, logger, process: job => storeSourceMaps(uploads, job) },
    poolOptions(config, config.SOURCE_MAPS_CONCURRENCY),
  )
  return pool
}
