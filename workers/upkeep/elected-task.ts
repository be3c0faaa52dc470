import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { DAY_MS, HOUR_MS } from '../../schemas/units.ts'
import { Lease } from '../../shared/directory/lease.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import { redisTimeMs } from '../../shared/queue/watermark.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Names of the tasks. */
export const TASKS = [
  'erasures',
  'rewrites',
  'reseal',
  'failures',
  'edges',
  'alerts',
  'measures',
  'grouping',
  'retention',
  'releases',
  'uploads',
  'maps',
] as const

/** A task that one process of the workers does at a time. */
export interface ElectedTask {
  readonly name: (typeof TASKS)[number]
  /** Time between the end of a run and the next one, also if another process does it. 0: at every look. */
  readonly everyMs: number
  /** The hour of the day (UTC) from which on the task is due, once a day, instead of after `everyMs`. */
  readonly fromHour?: number
  /** How often each process looks whether the task is due. */
  readonly lookEveryMs: number
  /** How long a process waits after a run that failed; as long as after any other if left out. */
  readonly retryAfterMs?: number
  /**
   * Does the task. `assertElected` throws when another process may have it, or this one is stopping. A number that it
   * returns is the time in ms until this process looks again, instead of `lookEveryMs`.
   */
  readonly run: (assertElected: () => Promise<void>) => Promise<unknown>
}

/** Dependencies of a task. */
interface ElectedTaskDeps {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly logger: Logger
  readonly stopping: AbortSignal
  /** Called with the time at which a task was last done, in Unix ms of Redis: by any process, except those done at every look. */
  readonly onDone: (task: ElectedTask['name'], atMs: number) => void
}

/** A worker that was killed leaves its task to another one after this time. */
const LEASE_MS = 15_000
const RENEW_EVERY_MS = 5_000

/** Looks again and again whether the task is due, and does it if this process is elected, until it is stopped. */
export async function runElected(deps: ElectedTaskDeps, task: ElectedTask): Promise<void> {
  const lease = new Lease(deps.redis, task.name, LEASE_MS)
  while (!deps.stopping.aborted) {
    let waitMs = task.lookEveryMs
    try {
      waitMs = (await runIfDue(deps, task, lease)) ?? waitMs
    } catch (error) {
      waitMs = task.retryAfterMs ?? waitMs
      if (!deps.stopping.aborted)
        deps.logger.warn({ task: task.name, ...errorFields(error) }, 'a task failed, will be repeated')
    }
    await delay(waitMs, undefined, { signal: deps.stopping }).catch(() => {})
  }
}

async function runIfDue(deps: ElectedTaskDeps, task: ElectedTask, lease: Lease): Promise<number | undefined> {
  const { redis, stopping } = deps
  if (redis.status !== 'ready') return undefined
  if (!(await isDue(deps, task)) || !(await lease.take())) return undefined
  let lastTaken = performance.now()
  const renewing = setInterval(() => {
    const takenAt = performance.now()
    void lease.take().then(
      hasIt => {
        lastTaken = hasIt ? takenAt : Number.NEGATIVE_INFINITY
      },
      () => {},
    )
  }, RENEW_EVERY_MS)
  try {
    const againMs = await task.run(async () => {
      stopping.throwIfAborted()
      if (performance.now() - lastTaken > LEASE_MS) throw new TransientError('another process is elected')
    })
    const doneAtMs = await redisTimeMs(redis)
    if (task.everyMs > 0) await redis.hset(upkeepKeys.done, task.name, doneAtMs)
    deps.onDone(task.name, doneAtMs)
    return typeof againMs === 'number' ? againMs : undefined
  } finally {
    clearInterval(renewing)
    await lease.release().catch(() => {})
  }
}

/** Returns whether a task is due by the clock of Redis. It is also due if that clock was ahead when the task was done last. */
async function isDue({ redis, onDone }: ElectedTaskDeps, { name, everyMs, fromHour }: ElectedTask): Promise<boolean> {
  if (everyMs === 0) return true
  const doneAt = Number((await redis.hget(upkeepKeys.done, name)) ?? 0)
  onDone(name, doneAt)
  const nowMs = await redisTimeMs(redis)
  const passed = nowMs - doneAt
  if (fromHour !== undefined) return passed >= (nowMs - fromHour * HOUR_MS) % DAY_MS || passed < 0
  return passed >= everyMs || passed < 0
}
