import { setTimeout as delay } from 'node:timers/promises'
import { ADMITTED_QUEUES, QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { lanesOf, queueKeys } from '../../shared/queue/queue.ts'
import type { QueueConnections } from '../../shared/queue/queues.ts'
import { partitionsOf } from '../../shared/queue/registry/queue-tag.ts'

/** Requests and bytes of a queue that are not finished. */
export interface QueueBacklog {
  readonly queue: QueueName
  readonly payloads: number
  readonly bytes: number
}

/** Queues that only workers write to. The edge reports the backlogs of the others. */
const INTERNAL_QUEUES = QUEUES.filter(queue => !(ADMITTED_QUEUES as readonly QueueName[]).includes(queue))
const COUNTERS = ['acceptedPayloads', 'donePayloads', 'acceptedBytes', 'doneBytes'] as const
/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/** Returns the backlogs of the queues that only workers write to, or nothing if Redis does not respond. */
export async function readInternalBacklogs(queues: QueueConnections): Promise<readonly QueueBacklog[]> {
  if (queues.common.status !== 'ready') return []
  const readAll = async () => {
    const { numbers } = await queues.partitions()
    return Promise.all(INTERNAL_QUEUES.map(queue => readBacklog(queues, queue, numbers)))
  }
  return Promise.race([readAll().catch(() => []), delay(READ_TIMEOUT_MS, [], { ref: false })])
}

async function readBacklog(
  queues: QueueConnections,
  queue: QueueName,
  partitions: readonly number[],
): Promise<QueueBacklog> {
  const read = partitionsOf(queue, partitions).map(async partition => {
    const counters = await queues.at(queue, partition).hmget(queueKeys(queue, partition).flow, ...COUNTERS)
    const [acceptedPayloads = 0, donePayloads = 0, acceptedBytes = 0, doneBytes = 0] = counters.map(Number)
    return { payloads: acceptedPayloads - donePayloads, bytes: acceptedBytes - doneBytes }
  })
  const sum = { payloads: 0, bytes: 0 }
  for (const { payloads, bytes } of await Promise.all(read)) {
    sum.payloads += payloads
    sum.bytes += bytes
  }
  return { queue, ...sum }
}

/** Returns how many jobs of each queue wait to be taken in these partitions, or undefined if Redis does not respond. */
export async function readWaitingJobs(
  queues: QueueConnections,
  names: readonly QueueName[],
  partitions: readonly number[],
): Promise<ReadonlyMap<QueueName, number> | undefined> {
  if (queues.common.status !== 'ready') return undefined
  const readOne = async (queue: QueueName): Promise<[QueueName, number]> => {
    const lengths = await Promise.all(
      partitionsOf(queue, partitions).flatMap(partition =>
        lanesOf(queue).map(lane => queues.at(queue, partition).llen(queueKeys(queue, partition).waiting(lane))),
      ),
    )
    return [queue, lengths.reduce((sum, length) => sum + length, 0)]
  }
  const read = Promise.all(names.map(readOne)).then(
    entries => new Map(entries),
    () => undefined,
  )
  return Promise.race([read, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}
