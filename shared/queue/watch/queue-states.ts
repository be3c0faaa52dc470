import { setTimeout as delay } from 'node:timers/promises'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { shareReads } from '../../runtime/shared-read.ts'
import { lanesOf } from '../queue.ts'
import type { QueueList, Queues } from '../queues.ts'

/** State of the jobs of the queues of one name. */
interface QueueState {
  /** BullMQ queues of the name: one for each lane of each partition. */
  readonly lanes: number
  /** How many of them give workers no jobs. */
  readonly pausedLanes: number
  /** Jobs that BullMQ does not repeat. Jobs of the service are repeated without limit, so something else has added these. */
  readonly failedJobs: number
}

/** Returns the state of the queues of each name. */
export async function readQueueStates({ of }: QueueList): Promise<ReadonlyMap<QueueName, QueueState>> {
  const states = QUEUES.map(async (name): Promise<[QueueName, QueueState]> => {
    const lanes = of(name).flatMap(queue => lanesOf(name).map(lane => ({ queue, lane })))
    const read = await Promise.all(
      lanes.map(({ queue: { redis, keys }, lane }) =>
        Promise.all([redis.hexists(keys.settings(lane), 'paused'), redis.zcard(keys.failed(lane))]),
      ),
    )
    const sums = { pausedLanes: 0, failedJobs: 0 }
    for (const [paused, failed] of read) {
      sums.pausedLanes += paused
      sums.failedJobs += failed
    }
    return [name, { lanes: lanes.length, ...sums }]
  })
  return new Map(await Promise.all(states))
}

/** Returns whether workers get no job of the queues of a name. */
export function isPaused(state: QueueState | undefined): boolean {
  return state !== undefined && state.pausedLanes === state.lanes
}

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000
/** Both metrics of a report share one read. */
const REMEMBERED_MS = 500

/** Shows which queues are paused, and their failed jobs. Nothing is shown while Redis does not answer. */
export function watchQueueStates(metrics: Metrics, queues: Queues): void {
  const readAll = shareReads(REMEMBERED_MS, async () => readQueueStates(await queues.read()))
  const read = async () => {
    if (queues.common.status !== 'ready') return []
    const states = readAll().catch(() => undefined)
    return (await Promise.race([states, delay(READ_TIMEOUT_MS, undefined, { ref: false })])) ?? []
  }
  metrics.gauge({
    name: 'penstock_queue_paused',
    help: '1 if workers take no jobs of the queue until "penstock queues resume".',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      for (const [queue, state] of await read()) this.set({ queue }, state.pausedLanes > 0 ? 1 : 0)
    },
  })
  metrics.gauge({
    name: 'penstock_jobs_failed',
    help: 'Jobs that are not repeated. A job of the service always is, so something else has added them.',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      for (const [queue, { failedJobs }] of await read()) this.set({ queue }, failedJobs)
    },
  })
}
