import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { LaneBudget } from '../queue/lane-budget.ts'
import { openPayloadReader } from '../queue/payloads/payload-reader.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreReplayDeps, storeReplay } from '../replay/store-replay.ts'
import { startInspection } from '../replay/threads/inspection-threads.ts'

/** Memory that is kept for packed payloads. */
const IDLE_BYTES = 4 * 1024 * 1024

/** Starts the pool that checks replay chunks and writes them to the object store. */
export function startReplayPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  // On a connection of its own: a payload of 10 MiB would hold up the payloads of the other pools. The memory of a payload is not
  // given back: where the object store has answered before it has read a whole chunk, a connection may still send it.
  const reader = openPayloadReader(deps.redis, logger, { maxIdleBytes: IDLE_BYTES })
  const store = new RedisPayloadStore(deps.redis, 'replay', reader)
  const inspection = startInspection(logger)
  const replay: StoreReplayDeps = {
    inspect: inspection.inspect,
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
    {
      redisUrl: config.REDIS_URL,
      logger,
      process: job => storeReplay(replay, job),
      onClosed: async () => {
        reader.close()
        await inspection.close()
      },
    },
    poolOptions(config, config.REPLAY_CONCURRENCY),
  )
  return pool
}
