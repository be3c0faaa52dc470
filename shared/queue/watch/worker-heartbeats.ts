import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { type QueueName, queueNameSchema } from '../../../schemas/queues/names.ts'

/** Processes of the workers by the time at which they count as ended, in Unix ms of Redis (sorted set). */
const HEARTBEATS_KEY = 'penstock:{installation}:workers'
/** Name of a process of the workers → its pools and how busy it is, as JSON (hash). */
const LOADS_KEY = 'penstock:{installation}:worker-loads'
const EVERY_MS = 10_000
/** A process that was killed counts as running for this long. */
const LIFETIME_MS = 30_000

/** KEYS heartbeats, loads; ARGV name of the process, lifetime, load. */
const BEAT = `
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs)
for _, name in ipairs(ended) do redis.call('HDEL', KEYS[2], name) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
redis.call('ZADD', KEYS[1], nowMs + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
`

/** KEYS heartbeats. Returns the names of the processes that run. */
const RUNNING = `
local now = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], now[1] * 1000, '+inf')
`

/** KEYS heartbeats, loads. Returns the loads of the processes that run. */
const RUNNING_LOADS = `
local now = redis.call('TIME')
local names = redis.call('ZRANGEBYSCORE', KEYS[1], now[1] * 1000, '+inf')
if #names == 0 then return {} end
return redis.call('HMGET', KEYS[2], unpack(names))
`

const loadSchema = z.object({ queues: z.array(z.string()), busy: z.number() })

/** How busy a process of the workers is. */
export interface WorkerLoad {
  /** The queues that it has pools of. */
  readonly queues: readonly QueueName[]
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
export function startHeartbeat(
  redis: Pick<Redis, 'eval' | 'zrem' | 'hdel'>,
  queues: readonly QueueName[],
): { stop(): Promise<void> } {
  const name = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  let before = performance.eventLoopUtilization()
  const beat = () => {
    const current = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(current, before).utilization
    before = current
    const load = JSON.stringify({ queues, busy: Number(busy.toFixed(3)) })
    return redis.eval(BEAT, 2, HEARTBEATS_KEY, LOADS_KEY, name, LIFETIME_MS, load).catch(() => undefined)
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
export async function runningWorkers(redis: Pick<Redis, 'eval'>): Promise<string[]> {
  const names = (await redis.eval(RUNNING, 1, HEARTBEATS_KEY)) as string[]
  return names.map(name => name.slice(0, name.lastIndexOf(':')))
}

/** Returns the loads of the same workers. One of a version that does not report its load is left out. */
export async function runningLoads(redis: Pick<Redis, 'eval'>): Promise<WorkerLoad[]> {
  const texts = (await redis.eval(RUNNING_LOADS, 2, HEARTBEATS_KEY, LOADS_KEY)) as (string | null)[]
  return texts.flatMap(text => {
    if (text === null) return []
    const { queues, busy } = loadSchema.parse(JSON.parse(text))
    // A worker of another version may have queues that this one does not know.
    return [{ queues: queues.flatMap(queue => queueNameSchema.safeParse(queue).data ?? []), busy }]
  })
}
