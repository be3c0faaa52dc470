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

/** Starts the pool that builds the manifests of releases. */
export function startCompletionsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const { redis, addJobs, place } = deps.at('completions', 0)
  const store = new RedisPayloadStore(redis, 'completions', undefined, undefined, place)
  const completions: StoreCompletionsDeps = {
    redis: deps.redis,
    objects: deps.objects,
    releases: deps.releases,
    refusedReads: new TokenBuckets(REFUSED_READS),
    store,
    suspects: new Suspects(store, logger),
    failures: deps.metrics.watchFailures('completions', new RepeatedFailures()),
    memory: new Budget(config.COMPLETIONS_HELD_BYTES),
    addJobs,
    logger,
    stopping: deps.stopping,
    now: Date.now,
    onAttempt: attempt => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onCompletion: deps.metrics.observeCompletion,
  }
  let isClosing = false
  const inTurn = createWorkspaceTurns(
    { queue: 'completions', redisOf: () => redis, isClosing: () => isClosing },
    config.COMPLETIONS_CONCURRENCY,
  )
  const pool = startPool(
    'completions',
    {
      servers: deps.servers,
      logger,
      process: (job, partition) => inTurn(job.jobId, partition, () => storeCompletions(completions, job)),
      onClosing: () => {
        isClosing = true
      },
    },
    poolOptions(config, HELD_JOBS),
  )
  return pool
}
