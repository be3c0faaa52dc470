import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { LaneBudget } from '../queue/lane-budget.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreReplayDeps, storeReplay } from '../replay/store-replay.ts'

/** Starts the pool that checks replay chunks and writes them to the object store. */
export function startReplayPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const store = new RedisPayloadStore(deps.redis, 'replay')
  const replay: StoreReplayDeps = {
    objects: deps.objects,
    store,
    confirmed: deps.confirmed,
    suspects: new Suspects(store, logger),
    failures: deps.metrics.watchFailures('replay', new RepeatedFailures()),
    held: new LaneBudget(config.REPLAY_HELD_BYTES),
    addJobs: deps.addJobs,
    letterQuota: deps.letterQuota,
    logger,
    stopping: deps.stopping,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onStored: deps.metrics.observeReplayJob,
  }
  const pool = startPool(
    'replay',
    { redisUrl: config.REDIS_URL, logger, process: job => storeReplay(replay, job) },
    poolOptions(config, config.REPLAY_CONCURRENCY),
  )
  return pool
}
