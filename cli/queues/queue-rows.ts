import { QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { readQueueLoads } from '../../shared/queue/watch/queue-loads.ts'
import { readQueueStates } from '../../shared/queue/watch/queue-states.ts'
import { countStuckJobs } from './find-jobs.ts'

/** The queues of a name, as an operator sees them. */
export interface QueueRow {
  readonly queue: QueueName
  readonly partitions: number
  readonly requests: number
  readonly costBytes: number
  readonly oldestSeconds: number
  readonly workers: number
  readonly busyWorkers: number
  readonly failedJobs: number
  readonly stuckJobs: number
  readonly paused: boolean
  /** What an operator should look at. Empty if nothing. */
  readonly notes: readonly string[]
}

/** Reads the queues of every name. Throws if Redis does not answer. */
export async function readQueueRows(queues: Queues): Promise<QueueRow[]> {
  const list = await queues.read()
  const [loads, states, ...stuck] = await Promise.all([
    readQueueLoads(queues),
    readQueueStates(list),
    ...QUEUES.map(name => countStuckJobs(list.of(name))),
  ])
  return QUEUES.map((queue, i) => {
    const { requests, costBytes, ageSeconds, workers, busyWorkers } = loads[queue]
    const { lanes = 0, pausedLanes = 0, failedJobs = 0 } = states.get(queue) ?? {}
    const stuckJobs = stuck[i] ?? 0
    const notes = [
      ...(pausedLanes > 0 && pausedLanes === lanes ? ['paused'] : []),
      ...(pausedLanes > 0 && pausedLanes < lanes
        ? [`paused in part (${pausedLanes} of ${lanes}): pause it again`]
        : []),
      ...(requests > 0 && workers === 0 ? ['NO WORKER'] : []),
      ...(failedJobs > 0 ? ['failed jobs'] : []),
      ...(stuckJobs > 0 ? ['stuck jobs'] : []),
    ]
    const load = { requests, costBytes, oldestSeconds: Math.round(ageSeconds), workers, busyWorkers }
    const jobs = { failedJobs, stuckJobs, paused: pausedLanes > 0, notes }
    return { queue, partitions: list.of(queue).length, ...load, ...jobs }
  })
}
