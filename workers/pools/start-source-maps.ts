import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { openPayloadReader, type PayloadReader } from '../queue/payloads/payload-reader.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreSourceMapsDeps, storeSourceMaps } from '../source-maps/store-source-maps.ts'

/** Memory that is kept for payloads of parts. */
const IDLE_BYTES = 4 * MIB

/** Jobs in progress, and the bytes of their payloads. A map over the bound is processed alone. */
const CONCURRENT_JOBS = 8
const HELD_BYTES = 32 * MIB

/** Before a whole map of more bytes is read, the idle columns of the other pools give their memory back. */
const LARGE_BYTES = 8 * MIB

/** Starts the pool that writes parts and whole source maps to the object store. */
export function startSourceMapsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const memory = new Budget(HELD_BYTES)
  const readers: PayloadReader[] = []
  const shared: Omit<StoreSourceMapsDeps, 'store' | 'addJobs' | 'suspects'> = {
    redis: deps.redis,
    objects: deps.objects,
    releases: deps.releases,
    failures: deps.metrics.watchFailures('source-maps', new RepeatedFailures()),
    memory: {
      run(bytes, work, options) {
        const store = () => {
          if (bytes > LARGE_BYTES) deps.columnMemory.giveBackIdle()
          return work()
        }
        return memory.run(bytes, store, options)
      },
    },
    letterQuota: deps.letterQuota,
    logger,
    stopping: deps.stopping,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onUpload: deps.metrics.observeSourceMap,
  }
  const pool = startPool(
    'source-maps',
    {
      queues: deps.queues,
      logger,
      open: queue => {
        // On a connection of its own: a payload of 40 MiB would hold up the payloads of the other pools.
        const reader = openPayloadReader(queue.redis, logger, { maxIdleBytes: IDLE_BYTES })
        readers.push(reader)
        const store = new RedisPayloadStore(queue, reader)
        const { addJobs } = deps.accessTo(queue)
        const uploads: StoreSourceMapsDeps = { ...shared, store, addJobs, suspects: new Suspects(store, logger) }
        return job => storeSourceMaps(uploads, job)
      },
      onClosed: async () => {
        for (const reader of readers) reader.close()
      },
    },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
