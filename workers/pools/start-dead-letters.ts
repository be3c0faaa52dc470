import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { poolOptions } from '../config.ts'
import { type StoreDeadLettersDeps, storeDeadLetters } from '../dead-letters/store-dead-letters.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'

/** Jobs in progress, each of which writes 16 objects at the same time. */
const CONCURRENT_JOBS = 4
/** Bytes of the payloads in progress. A payload is 8 MiB, or one larger letter. */
const HELD_BYTES = 24 * MIB

/** Starts the pool that writes dead letters to the object store. */
export function startDeadLettersPool({ config, logger, objects, accessTo, queues, stopping }: PoolsDeps): Pool {
  const shared = {
    objects,
    memory: new Budget(HELD_BYTES),
    logger,
    stopping,
    onAttempt: (attempt: number) => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
  }
  const pool = startPool(
    'dead-letters',
    {
      queues,
      logger,
      open: queue => {
        const { addJobs } = accessTo(queue)
        const letters: StoreDeadLettersDeps = { ...shared, addJobs, store: new RedisPayloadStore(queue) }
        return job => storeDeadLetters(letters, job)
      },
    },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
