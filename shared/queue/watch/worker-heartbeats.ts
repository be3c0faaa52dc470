import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { type PoolName, poolNameSchema } from '../../../schemas/queues/names.ts'
import { queueScript } from '../queue-script.ts'

/** Processes of the workers by the time at which they count as ended, in Unix ms of Redis (sorted set). */
const HEARTBEATS_KEY = 'penstock:{installation}:workers'
/** Name of a process of the workers → its pools and how busy it is, as JSON (hash). */
const LOADS_KEY = 'penstock:{installation}:worker-loads'
const EVERY_MS = 10_000
/** A process that was killed counts as running for this long. */
const LIFETIME_MS = 30_000

const BEAT = queueScript('beat')
const RUNNING_WORKERS = queueScript('running-workers')

const loadSchema = z.object({ queues: z.array(z.string()), busy: z.number() })

/** How busy a process of the workers is. */
export interface WorkerLoad {
  /** Its pools. */
  readonly queues: readonly PoolName[]
  /** Share of the time since its heartbeat before in which its event loop had work, 0 to 1. */
  readonly busy: number
}

/**
 * Shows that this process of the workers runs, until it is stopped, and how busy it is. Migrations that need quiet look at the
 * first, autoscalers at the second.
 *
 * The time of the event loop includes the time in which the kernel lets the process wait for its share of a CPU. So a process
 * at a CPU limit is busy all the time, like one that has a core and needs all of it.
 */
export function startHeartbeat(redis: Redis, queues: readonly PoolName[]): { stop(): Promise<void> } {
  const name = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  let before = performance.eventLoopUtilization()
  const beat = () => {
    const current = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(current, before).utilization
    before = current
    const load = JSON.stringify({ queues, busy: Number(busy.toFixed(3)) })
    return BEAT.run(redis, [HEARTBEATS_KEY, LOADS_KEY], [name, LIFETIME_MS, load]).catch(() => undefined)
  }
  void beat()
  const beating = setInterval(() => void beat(), EVERY_MS)
  beating.unref()
  return {
    async stop() {
      clearInterval(beating)
      await Promise.all([redis.zrem(HEARTBEATS_KEY, name), redis.hdel(LOADS_KEY, name)]).catch(() => undefined)
    },
  }
}

/** Returns host and process id of the workers that run, or have ended without a shutdown in the last half minute. */
export async function runningWorkers(redis: Redis): Promise<string[]> {
  const [names] = await running(redis)
  return names.map(name => name.slice(0, name.lastIndexOf(':')))
}

/** Returns the loads of the same workers. One of a version that does not report its load is left out. */
export async function runningLoads(redis: Redis): Promise<WorkerLoad[]> {
  const [, texts] = await running(redis)
  return texts.flatMap(text => {
    if (text === null) return []
    const { queues, busy } = loadSchema.parse(JSON.parse(text))
    // A worker of another version may have queues that this one does not know.
    return [{ queues: queues.flatMap(queue => poolNameSchema.safeParse(queue).data ?? []), busy }]
  })
}

async function running(redis: Redis): Promise<[names: string[], loads: (string | null)[]]> {
  return (await RUNNING_WORKERS.run(redis, [HEARTBEATS_KEY, LOADS_KEY])) as [string[], (string | null)[]]
}
