import { poolOptions } from '../config.ts'
import { storeDeadLetters } from '../dead-letters/store-dead-letters.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'

/** Each job writes 16 objects at the same time. */
const CONCURRENT_JOBS = 2

/** Starts the pool that writes refused requests to the object store. */
export function startDeadLettersPool({ config, logger, objects, redis }: PoolsDeps): Pool {
  const store = new RedisPayloadStore(redis, 'dead-letters')
  const letters = { objects, store, onStored: () => pool.progress() }
  const pool = startPool(
    'dead-letters',
    { redisUrl: config.REDIS_URL, logger, process: job => storeDeadLetters(letters, job.jobId) },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
