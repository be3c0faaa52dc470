import { setTimeout as delay } from 'node:timers/promises'
import { POOL_NAMES } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { shareReads } from '../../runtime/shared-read.ts'
import type { Queues } from '../queues.ts'
import { runningLoads } from './worker-heartbeats.ts'

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000
/** Both metrics of a report share one read. */
const KEEP_MS = 500

/**
 * Shows which queues have workers, by their heartbeats. Edge and workers both report it, so that it is known while no worker
 * runs. Nothing is shown while Redis does not answer.
 */
export function watchWorkers(metrics: Metrics, queues: Queues): void {
  const read = shareReads(KEEP_MS, async () => {
    if (queues.common.status !== 'ready') return undefined
    const loads = runningLoads(queues.common).catch(() => undefined)
    return Promise.race([loads, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
  })
  metrics.gauge({
    name: 'penstock_queue_workers',
    help: 'Processes with a pool of the queue that run, each until 30 s after its last heartbeat.',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      const loads = await read()
      if (loads === undefined) return
      for (const queue of POOL_NAMES) this.set({ queue }, loads.filter(({ queues: own }) => own.includes(queue)).length)
    },
  })
  metrics.gauge({
    name: 'penstock_worker_processes',
    help: 'Processes of the workers that use this Redis, each until 30 s after its last heartbeat.',
    async collect() {
      const loads = await read()
      // Without this, a gauge that was never set is 0.
      if (loads === undefined) this.remove()
      else this.set(loads.length)
    },
  })
}
