import { startDeliveries } from '../../alerts/calling/deliver.ts'
import type { PoolsDeps } from '../deps.ts'
import type { Pool } from '../queue/pool.ts'

/**
 * Starts the pool that sends alerts, while the directory belongs to the installation. Each attempt is progress, also one that
 * fails: a receiver that does not accept is no reason to restart. Without DELIVERY_KEY no receiver is stored, and the pool has
 * nothing to do.
 */
export function startDeliveriesPool({ deliveries, metrics }: PoolsDeps): Pool {
  const startedAt = Date.now()
  const state = { activeJobs: 0, lastProgressAt: startedAt, lastAttemptAt: startedAt, jobRetries: 0 }
  const running = deliveries?.installation.whileMayUse(['directory'], () =>
    startDeliveries({
      ...deliveries.sending,
      onActive(change) {
        state.activeJobs += change
        state.lastAttemptAt = Date.now()
      },
      onAttempt(result) {
        state.lastProgressAt = Date.now()
        if (result === 'failed') state.jobRetries++
        metrics.observeDelivery(result)
      },
    }),
  )
  return {
    queue: 'deliveries',
    storeRetries: 0,
    get activeJobs() {
      return state.activeJobs
    },
    get lastProgressAt() {
      return state.lastProgressAt
    },
    get lastAttemptAt() {
      return state.lastAttemptAt
    },
    get jobRetries() {
      return state.jobRetries
    },
    close: async () => running?.stop(),
  }
}
