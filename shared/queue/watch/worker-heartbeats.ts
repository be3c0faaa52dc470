import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Redis } from 'ioredis'

/** Processes of the workers by the time at which they count as ended, in Unix ms of Redis (sorted set). */
const HEARTBEATS_KEY = 'penstock:{installation}:workers'
const EVERY_MS = 10_000
/** A process that was killed counts as running for this long. */
const LIFETIME_MS = 30_000

/** KEYS heartbeats; ARGV name of the process, lifetime. */
const BEAT = `
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
redis.call('ZADD', KEYS[1], nowMs + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

/** KEYS heartbeats. Returns the names of the processes that run. */
const RUNNING = `
local now = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], now[1] * 1000, '+inf')
`

/** Shows that this process of the workers runs, until it is stopped. Migrations that need quiet look at it. */
export function startHeartbeat(redis: Pick<Redis, 'eval' | 'zrem'>): { stop(): Promise<void> } {
  const name = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  const beat = () => redis.eval(BEAT, 1, HEARTBEATS_KEY, name, LIFETIME_MS).catch(() => undefined)
  void beat()
  const beating = setInterval(() => void beat(), EVERY_MS)
  beating.unref()
  return {
    async stop() {
      clearInterval(beating)
      await redis.zrem(HEARTBEATS_KEY, name).catch(() => undefined)
    },
  }
}

/** Returns host and process id of the workers that run, or have ended without a shutdown in the last half minute. */
export async function runningWorkers(redis: Pick<Redis, 'eval'>): Promise<string[]> {
  const names = (await redis.eval(RUNNING, 1, HEARTBEATS_KEY)) as string[]
  return names.map(name => name.slice(0, name.lastIndexOf(':')))
}
