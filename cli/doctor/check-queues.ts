import { readWaitingDeliveries } from '../../alerts/calling/waiting-deliveries.ts'
import { hasQueue, POOL_NAMES, type QueueName } from '../../schemas/queues/names.ts'
import { directoryKeys } from '../../shared/directory/record.ts'
import { lanesOf } from '../../shared/queue/queue.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { createQueueLoads } from '../../shared/queue/watch/queue-loads.ts'
import type { Examined } from '../command-context.ts'
import { counted } from '../terminal.ts'
import { type Finding, found } from './check.ts'

/** Age of the oldest request that is a warning. Every queue is empty within seconds when workers keep up. */
const OLD_S = 300

/** Examines the queues: work that waits, without a worker or for long, and jobs that failed for good. */
export async function checkQueues({ queues: connect, directory }: Examined): Promise<Finding[]> {
  const queues = await connect()
  const [loads, failed] = await Promise.all([
    createQueueLoads(queues, async () => readWaitingDeliveries((await directory()).redis))(),
    readFailedJobs(queues),
  ])
  const findings: Finding[] = []
  for (const queue of POOL_NAMES) {
    const { requests, workers, ageSeconds } = loads[queue]
    const waiting = `${queue}: ${queue === 'deliveries' ? counted(requests, 'delivery waits', 'deliveries wait') : counted(requests, 'request waits', 'requests wait')}`
    if (requests > 0 && workers === 0) findings.push(found.fault(`${waiting}, and no worker has a pool of the queue`))
    else if (ageSeconds > OLD_S) {
      findings.push(found.warning(`${waiting}, the oldest for ${Math.round(ageSeconds / 60)} minutes`))
    }
    const jobs = hasQueue(queue) ? (failed.get(queue) ?? 0) : 0
    if (jobs > 0) findings.push(found.warning(`${queue}: ${counted(jobs, 'job')} failed and will not be tried again`))
  }
  // Without a receiver, nothing is to be delivered.
  const hasReceivers = (await (await directory()).redis.exists(directoryKeys.alerting)) > 0
  const needed = POOL_NAMES.filter(queue => queue !== 'deliveries' || hasReceivers)
  const idle = needed.filter(queue => loads[queue].workers === 0 && loads[queue].requests === 0)
  if (idle.length === needed.length) findings.push(found.warning('no worker runs'))
  else if (idle.length > 0) findings.push(found.warning(`no worker has a pool of ${idle.join(', ')}`))
  return findings.length > 0 ? findings : [found.ok('every queue has a worker, and no request waits for long')]
}

/** Counts the jobs of each queue that BullMQ has given up. */
async function readFailedJobs(queues: Queues): Promise<ReadonlyMap<QueueName, number>> {
  const { all } = await queues.read()
  const counts = new Map<QueueName, number>()
  for (const { name, redis, keys } of all) {
    const lanes = await Promise.all(lanesOf(name).map(lane => redis.zcard(keys.failed(lane))))
    counts.set(
      name,
      lanes.reduce((sum, count) => sum + count, counts.get(name) ?? 0),
    )
  }
  return counts
}
