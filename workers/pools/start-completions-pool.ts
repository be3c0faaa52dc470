import { Budget } from '../../shared/concurrency/budget.ts'
import { createPayloadStore } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { storeCompletions } from '../source-maps/store-completions.ts'
import type { PoolsDeps } from './table.ts'

/** A pool that makes the manifests of releases. */
export function startCompletionsPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const completions = {
    ...deps,
    store: createPayloadStore(deps.redis, 'completions'),
    held: new Budget(config.COMPLETIONS_HELD_BYTES),
    now: Date.now,
    onAttempt: () => pool.progress(),
    onCompletion: deps.metrics.observeCompletion,
  }
  const pool = startPool(
    'completions',
    { redisUrl: config.REDIS_URL, logger, process: (job, bytes) => storeCompletions(completions, job, bytes) },
    {
      concurrency: config.COMPLETIONS_CONCURRENCY,
      lockMs: config.JOB_LOCK_MS,
      stalledCheckMs: config.JOB_STALLED_CHECK_MS,
    },
  )
  return pool
}
