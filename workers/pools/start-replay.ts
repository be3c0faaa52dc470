import type { Redis } from 'ioredis'
import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { openPayloadReader, type PayloadReader } from '../queue/payloads/payload-reader.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreReplayDeps, storeReplay } from '../replay/store-replay.ts'
import { startInspection } from '../replay/threads/inspection-threads.ts'

/** Memory that is kept for packed payloads. */
const IDLE_BYTES = 4 * MIB

/** Jobs in progress, and the bytes of their payloads. */
const CONCURRENT_JOBS = 8
const HELD_BYTES = 32 * MIB

/** Starts the pool that checks replay chunks and writes them to the object store. */
export function startReplayPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  // On a connection of its own: a payload of 10 MiB would hold up the payloads of the other pools. The memory of a payload is not
  // given back: where the object store has answered before it has read a whole chunk, a connection may still send it.
  const readers = new Map<Redis, PayloadReader>()
  const readerOf = (redis: Redis): PayloadReader => {
    const reader = readers.get(redis) ?? openPayloadReader(redis, logger, { maxIdleBytes: IDLE_BYTES })
    readers.set(redis, reader)
    return reader
  }
  const inspection = startInspection(logger)
  const shared = {
    inspect: inspection.inspect,
    scrubbing: deps.scrubbing,
    objects: deps.objects,
    failures: deps.metrics.watchFailures('replay', new RepeatedFailures()),
    memory: new Budget(HELD_BYTES),
    letterQuota: deps.letterQuota,
    logger,
    stopping: deps.stopping,
    onAttempt: (attempt: number) => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onStored: deps.metrics.observeReplayJob,
  }
  const pool = startPool(
    'replay',
    {
      queues: deps.queues,
      logger,
      open: queue => {
        const { confirmed, addJobs } = deps.accessTo(queue)
        const store = new RedisPayloadStore(queue, readerOf(queue.redis), confirmed)
        const replay: StoreReplayDeps = { ...shared, store, addJobs, suspects: new Suspects(store, logger) }
        return job => storeReplay(replay, job)
      },
      onClosed: async () => {
        for (const reader of readers.values()) reader.close()
        await inspection.close()
      },
    },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}
