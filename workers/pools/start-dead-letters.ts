import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { poolOptions } from '../config.ts'
import { type StoreDeadLettersDeps, storeDeadLetters } from '../dead-letters/store-dead-letters.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { perPartition } from './per-partition.ts'

/** Jobs in progress, each of which writes 16 objects at the same time. */
const CONCURRENT_JOBS = 4
/** Bytes of the payloads in progress. A payload is 8 MiB, or one larger letter. */
const HELD_BYTES = 24 * MIB

/** Starts the pool that writes dead letters to the object store. */
export function startDeadLettersPool({ config, logger, objects, at, servers, partitions, stopping }: PoolsDeps): Pool {
  const shared = {
    objects,
    memory: new Budget(HELD_BYTES),
    logger,
    stopping,
    onAttempt: (attempt: number) => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
  }
  const lettersOf = perPartition((partition): StoreDeadLettersDeps => {
    const { redis, addJobs, place } = at('dead-letters', partition)
    return { ...shared, addJobs, store: new RedisPayloadStore(redis, 'dead-letters', undefined, undefined, place) }
  })
  const pool = startPool(
    'dead-letters',
    {
      servers,
      logger,
      partitions,
      process: (job, partition) => storeDeadLetters(lettersOf(partition), job),
    },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
