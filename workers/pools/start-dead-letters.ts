import { poolOptions } from '../config.ts'
import { type StoreDeadLettersDeps, storeDeadLetters } from '../dead-letters/store-dead-letters.ts'
import type { PoolsDeps } from '../deps.ts'
import { LaneBudget } from '../queue/lane-budget.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'

/** Jobs in progress, each of which writes 16 objects at the same time. */
const CONCURRENT_JOBS = 4
/** Bytes of the payloads in progress. A payload is 8 MiB, or one larger letter. */
const HELD_BYTES = 24 * 1024 * 1024

/** Starts the pool that writes dead letters to the object store. */
export function startDeadLettersPool({ config, logger, objects, redis, addJobs, stopping }: PoolsDeps): Pool {
  const letters: StoreDeadLettersDeps = {
    objects,
    store: new RedisPayloadStore(redis, 'dead-letters'),
    held: new LaneBudget(HELD_BYTES),
    addJobs,
    logger,
    stopping,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
  }
  const pool = startPool(
    'dead-letters',
    { redisUrl: config.REDIS_URL, logger, process: job => storeDeadLetters(letters, job) },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
