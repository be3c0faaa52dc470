import type { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { wholePayload } from '../../shared/queue/packed-payload.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { JOB_OPTIONS, lanesOf, openQueue, SWEEPER_KEYS } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type NewPayload, sizeOf } from './payloads/payload-store.ts'
import type { AddJobs } from './process-frames.ts'

/** Creates an adder of jobs for payloads that are in a queue, or were moved from it. Jobs that exist are left alone. */
export function createJobAdder(source: RedisQueue) {
  const queues = new Map<QueueName, Queue<CommitJob>>()
  return {
    /** Adds the jobs to the last lane of their queue: the payloads are late, or were too large to be decoded at once. */
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        const { redis, keys } = source.beside(name)
        queue = openQueue(redis, keys, lanesOf(name).at(-1) ?? 'express')
        // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
        queue.on('error', () => {})
        queues.set(name, queue)
      }
      await queue.addBulk(
        payloads.map(payload => ({
          name: 'commit',
          data: { payloads: payload.frames, bytes: sizeOf(payload) } satisfies CommitJob,
          opts: { ...JOB_OPTIONS, jobId: payload.jobId },
        })),
      )
    },
    async close(): Promise<void> {
      await Promise.all([...queues.values()].map(queue => queue.close()))
    },
  }
}

/** Dependencies of a sweep. */
interface SweepDeps {
  readonly queue: RedisQueue
  /** Reaches the cursors of the sweeper. */
  readonly common: Redis
  readonly logger: Logger
  readonly addJobs: AddJobs
  readonly now?: () => number
}

const SWEEP = queueScript('sweep')

/** Payloads that are younger than this are left alone: their jobs may be on the way. */
const MIN_AGE_MS = 5_000
const PAGE = 500
/** Payloads in memory at the same time. */
const CONCURRENT_RESCUES = 4
/**
 * Pages of one sweep of a queue: the oldest payloads, where one without a job stays while the others are processed, then the
 * next ones of a walk through all. Measured with a million payloads: 91 commands and 80 to 120 ms of Redis for a sweep, and 50
 * sweeps for a walk.
 */
const HEAD_PAGES = 4
const WALK_PAGES = 40

/**
 * Adds the jobs of payloads of a queue that have no live job, because an edge or a worker died between writing the payload
 * and adding its job, or because someone emptied the queue. Never deletes a payload. Returns the number of jobs it added. Looks
 * at all payloads of a short queue and at a bounded part of a long one, where the next sweep continues.
 */
export async function sweep(deps: SweepDeps, isStopped = () => false): Promise<number> {
  const { queue, common } = deps
  const head = await walk(deps, { start: 0, pages: HEAD_PAGES, isStopped })
  if (head.last === undefined) return head.found
  const cursor = await common.hget(SWEEPER_KEYS.cursors, queue.tag)
  const reached = cursor === null ? 0 : await rankAfter(queue, cursor)
  const rest = await walk(deps, { start: Math.max(head.end, reached), pages: WALK_PAGES, isStopped })
  const next = rest.last && `${rest.last.arrivedAtMs} ${rest.last.jobId}`
  if (next === undefined) await common.hdel(SWEEPER_KEYS.cursors, queue.tag)
  else await common.hset(SWEEPER_KEYS.cursors, queue.tag, next)
  return head.found + rest.found
}

/** A part of a queue that was looked at. */
interface Walk {
  /** Jobs that were added. */
  readonly found: number
  /** Rank after the last payload. */
  readonly end: number
  /** The last payload, or undefined if none came after it. */
  readonly last: Pending | undefined
}

/** Looks at pages of payloads. A page with payloads to rescue does not count, so that one sweep fills an emptied queue again. */
async function walk(
  deps: SweepDeps,
  { start, pages, isStopped }: { readonly start: number; readonly pages: number; readonly isStopped: () => boolean },
): Promise<Walk> {
  let found = 0
  let end = start
  let last: Pending | undefined
  for (let left = pages; left > 0 && !isStopped(); ) {
    const page = await readPage(deps, end)
    const rescued = await rescue(deps, page)
    found += rescued
    end += page.length
    if (page.length < PAGE) return { found, end, last: undefined }
    last = page.at(-1)
    if (rescued === 0) left--
  }
  return { found, end, last }
}

/** A payload as the sorted set of its queue has it. */
interface Pending {
  readonly jobId: string
  readonly arrivedAtMs: string
}

/** Returns the payloads from a rank on, in the order of their arrival, without those that are young. */
async function readPage({ queue, now = Date.now }: SweepDeps, start: number): Promise<readonly Pending[]> {
  const words = await queue.redis.zrange(queue.keys.pending, String(start), String(start + PAGE - 1), 'WITHSCORES')
  const page: Pending[] = []
  for (let i = 0; i < words.length; i += 2) {
    const [jobId, arrivedAtMs] = [words[i] as string, words[i + 1] as string]
    if (Number(arrivedAtMs) <= now() - MIN_AGE_MS) page.push({ jobId, arrivedAtMs })
  }
  return page
}

/** Returns the rank of the first payload after a cursor, whose own payload may be stored by now. */
async function rankAfter({ redis, keys: { pending } }: RedisQueue, cursor: string): Promise<number> {
  const [arrivedAtMs = '', jobId = ''] = cursor.split(' ')
  const rank = await redis.zrank(pending, jobId)
  return rank === null ? redis.zcount(pending, '-inf', `(${arrivedAtMs}`) : rank + 1
}

/** Adds the jobs of those payloads of a page that have none. Returns their number. */
async function rescue({ queue, logger, addJobs }: SweepDeps, page: readonly Pending[]): Promise<number> {
  if (page.length === 0) return 0
  const { name, redis, keys } = queue
  let rescued = 0
  const orphans = await withoutJob(queue, page)
  await forEachConcurrently(orphans, { concurrency: CONCURRENT_RESCUES }, async jobId => {
    const stored = await redis.getBuffer(keys.payload(jobId))
    if (stored === null) return
    try {
      const payload = await wholePayload([stored])
      await addJobs(name, [{ jobId, payload, frames: decodePayload(payload).length }])
      rescued++
    } catch (error) {
      // A payload that this version cannot read must not block the others.
      logger.warn({ queue: name, jobId, ...errorFields(error) }, 'could not add the job of a payload')
    }
  })
  return rescued
}

/** Returns the ids without a live job. One command for a page, because a sweep looks at thousands of payloads. */
async function withoutJob({ name, redis, keys }: RedisQueue, page: readonly Pending[]): Promise<string[]> {
  const lanes = lanesOf(name)
  const names = [
    ...lanes.map(lane => keys.failed(lane)),
    ...page.flatMap(({ jobId }) => lanes.map(lane => keys.job(lane, jobId))),
  ]
  const args = [lanes.length, ...page.map(({ jobId }) => jobId)]
  return (await SWEEP.run(redis, names, args)) as string[]
}
