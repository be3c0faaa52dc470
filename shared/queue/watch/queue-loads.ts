import { type PoolName, QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import type { Queues, RedisQueue } from '../queues.ts'
import { readQueueAges } from './queue-ages.ts'
import { isPaused, readQueueStates } from './queue-states.ts'
import { runningLoads, type WorkerLoad } from './worker-heartbeats.ts'

/** What an autoscaler of the pools of one queue looks at. */
interface QueueLoad {
  /** Time since the arrival of the oldest request that is accepted and not yet stored. 0 if there is none. */
  readonly ageSeconds: number
  /** Requests that are accepted and not yet stored. */
  readonly requests: number
  /** Their estimated work in decoded bytes, which admission bounds as well (`QUEUE_MAX_COST`). */
  readonly costBytes: number
  /** Processes with a pool of the queue that run. */
  readonly workers: number
  /** How many of them would be busy all the time with the work that all of them do: between 0 and `workers`. */
  readonly busyWorkers: number
  /** Whether workers take none of its jobs, however many there are. */
  readonly isPaused: boolean
}

/** Reads the deliveries of alerts that are due. Undefined while the Redis of the directory does not answer. */
type ReadDeliveries = () => Promise<{ readonly due: number; readonly oldestDueSeconds: number } | undefined>

/** The loads of all queues. */
type LoadsOfQueues = Readonly<Record<QueueName, QueueLoad>>
/** The loads of all pools: those of the queues, and of the deliveries of alerts. */
export type QueueLoads = Readonly<Record<PoolName, QueueLoad>>

const COUNTERS = ['acceptedPayloads', 'donePayloads', 'acceptedCost', 'doneCost'] as const
/** Statistics of spans wait on purpose until they are stored about once a minute (workers/pools/start-span-stats.ts). */
const WAITS_SECONDS: Readonly<Partial<Record<QueueName, number>>> = { 'span-stats': 120 }
/** An autoscaler asks for each queue several times at once. */
const REMEMBERED_MS = 500

/**
 * Reads the loads of all queues from the Redis of the queues, as autoscalers use them: age and cost of a paused queue are 0,
 * because no further worker would lower them, and the age of a queue begins after the time that its requests wait on purpose.
 * The age of deliveries is the time since the oldest was due, and they cost nothing. Without an
 * answer of the Redis of the directory, there are none. Calls within half a second share one read.
 */
export function createQueueLoads(
  queues: Queues,
  readDeliveries: ReadDeliveries,
  now: () => number = Date.now,
): () => Promise<QueueLoads> {
  let read: { readonly atMs: number; readonly loads: Promise<QueueLoads> } | undefined
  return () => {
    if (read === undefined || now() - read.atMs > REMEMBERED_MS) {
      const loads = readPoolLoads(queues, readDeliveries).then(forAutoscalers)
      read = { atMs: now(), loads }
      loads.catch(() => {
        read = undefined
      })
    }
    return read.loads
  }
}

function forAutoscalers(loads: QueueLoads): QueueLoads {
  const entries = Object.entries(loads).map(([queue, load]) => [
    queue,
    load.isPaused ? { ...load, ageSeconds: 0, costBytes: 0 } : { ...load, ageSeconds: afterWait(queue, load) },
  ])
  return Object.fromEntries(entries) as QueueLoads
}

function afterWait(queue: string, { ageSeconds }: QueueLoad): number {
  return Math.max(0, ageSeconds - (WAITS_SECONDS[queue as QueueName] ?? 0))
}

async function readPoolLoads(queues: Queues, readDeliveries: ReadDeliveries): Promise<QueueLoads> {
  const [loads, waiting, workers] = await Promise.all([
    readQueueLoads(queues),
    readDeliveries(),
    runningLoads(queues.common),
  ])
  const { due = 0, oldestDueSeconds: ageSeconds = 0 } = waiting ?? {}
  const deliveries = { ageSeconds, requests: due, costBytes: 0, ...busyOf('deliveries', workers), isPaused: false }
  return { ...loads, deliveries }
}

/** Reads the loads of all queues. Throws if Redis does not answer. */
export async function readQueueLoads(queues: Queues): Promise<LoadsOfQueues> {
  if (queues.common.status !== 'ready') throw new Error('redis is not connected')
  const list = await queues.read()
  const [ages, states, workers, ...flows] = await Promise.all([
    readQueueAges(queues),
    readQueueStates(list),
    runningLoads(queues.common),
    ...QUEUES.map(name => readFlow(list.of(name))),
  ])
  const loads = QUEUES.map((queue, i) => {
    const [accepted = 0, done = 0, acceptedCost = 0, doneCost = 0] = flows[i] ?? []
    const backlog = { requests: Math.max(0, accepted - done), costBytes: Math.max(0, acceptedCost - doneCost) }
    const load = { ageSeconds: ages.get(queue) ?? 0, ...backlog, ...busyOf(queue, workers) }
    return [queue, { ...load, isPaused: isPaused(states.get(queue)) }] as const
  })
  return Object.fromEntries(loads) as Record<QueueName, QueueLoad>
}

/** Returns the sums of the counters of queues. */
async function readFlow(queues: readonly RedisQueue[]): Promise<number[]> {
  const flows = await Promise.all(queues.map(({ redis, keys }) => redis.hmget(keys.flow, ...COUNTERS)))
  return COUNTERS.map((_, i) => flows.reduce((sum, flow) => sum + Number(flow[i] ?? 0), 0))
}

function busyOf(queue: PoolName, workers: readonly WorkerLoad[]): Pick<QueueLoad, 'workers' | 'busyWorkers'> {
  const own = workers.filter(({ queues }) => queues.includes(queue))
  return { workers: own.length, busyWorkers: Number(own.reduce((sum, { busy }) => sum + busy, 0).toFixed(3)) }
}
