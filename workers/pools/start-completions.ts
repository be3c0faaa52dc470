import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { TokenBuckets } from '../../shared/concurrency/token-bucket.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { createWorkspaceTurns, HELD_JOBS } from '../queue/workspace-turns.ts'
import { REFUSED_READS } from '../source-maps/complete-release.ts'
import { type StoreCompletionsDeps, storeCompletions } from '../source-maps/store-completions.ts'

/** Completions in progress, one of a workspace at a time. Each reads 16 maps at the same time. */
const CONCURRENT_JOBS = 4
/** Bytes of their bodies: room for four of the largest. */
const HELD_BYTES = 64 * MIB

/** Starts the pool that builds the manifests of releases. */
export function startCompletionsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const shared: Omit<StoreCompletionsDeps, 'store' | 'addJobs' | 'suspects'> = {
    redis: deps.redis,
    objects: deps.objects,
    releases: deps.releases,
    refusedReads: new TokenBuckets(REFUSED_READS),
    failures: deps.metrics.watchFailures('completions', new RepeatedFailures()),
    memory: new Budget(HELD_BYTES),
    logger,
    stopping: deps.stopping,
    now: Date.now,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onCompletion: deps.metrics.observeCompletion,
  }
  let isClosing = false
  const inTurn = createWorkspaceTurns(() => isClosing, CONCURRENT_JOBS)
  const pool = startPool(
    'completions',
    {
      queues: deps.queues,
      logger,
      open: queue => {
        const store = new RedisPayloadStore(queue)
        const { addJobs } = deps.accessTo(queue)
        const completions: StoreCompletionsDeps = { ...shared, store, addJobs, suspects: new Suspects(store, logger) }
        return job => inTurn(queue, job.jobId, () => storeCompletions(completions, job))
      },
      onClosing: () => {
        isClosing = true
      },
    },
    poolOptions(config, HELD_JOBS),
  )
  return pool
}
