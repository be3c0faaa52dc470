import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { wholePayload } from '../../shared/queue/packed-payload.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import {
  JOB_OPTIONS,
  type Lane,
  lanesOf,
  openQueue,
  type QueueKeys,
  queueKeys,
  SWEEPER_KEYS,
} from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { NewPayload } from './payloads/payload-store.ts'
import type { AddJobs } from './process-frames.ts'

/** Creates an adder of jobs for payloads that are already in a partition of Redis. Jobs that exist are left alone. */
export function createJobAdder(redis: Redis, partition = 0) {
  const queues = new Map<QueueName, ReturnType<typeof openQueue>>()
  return {
    /** Adds the jobs to the last lane of their queue: the payloads are late, or were too large to be decoded at once. */
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        queue = openQueue(redis, name, lanesOf(name).at(-1) ?? 'express', partition)
        // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
        queue.on('error', () => {})
        queues.set(name, queue)
      }
      await queue.addBulk(
        payloads.map(({ jobId, frames, payload }) => ({
          name: 'commit',
          data: { payloads: frames, bytes: payload.length } satisfies CommitJob,
          opts: { ...JOB_OPTIONS, jobId },
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
  /** Reaches the partition that is swept. */
  readonly redis: Redis
  /** Reaches the cursors of the sweeper. */
  readonly common: Redis
  readonly logger: Logger
  readonly addJobs: AddJobs
  /** The partition that is swept. */
  readonly partition: number
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
 * Adds the jobs of payloads of a partition that have no live job, because an edge or a worker died between writing the payload
 * and adding its job, or because someone emptied the queue. Never deletes a payload. Returns the number of jobs it added. Looks
 * at all payloads of a short queue and at a bounded part of a long one, where the next sweep continues.
 */
export async function sweep(deps: SweepDeps, queue: QueueName, isStopped = () => false): Promise<number> {
  const { redis, common, partition } = deps
  const head = await walk(deps, queue, { start: 0, pages: HEAD_PAGES, isStopped })
  if (head.last === undefined) return head.found
  // The name that the cursor of partition 0 has had before there were others.
  const field = partition === 0 ? queue : `${queue}.${partition}`
  const cursor = await common.hget(SWEEPER_KEYS.cursors, field)
  const reached = cursor === null ? 0 : await rankAfter(redis, queueKeys(queue, partition).pending, cursor)
  const rest = await walk(deps, queue, { start: Math.max(head.end, reached), pages: WALK_PAGES, isStopped })
  const next = rest.last && `${rest.last.arrivedAtMs} ${rest.last.jobId}`
  if (next === undefined) await common.hdel(SWEEPER_KEYS.cursors, field)
  else await common.hset(SWEEPER_KEYS.cursors, field, next)
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
  queue: QueueName,
  { start, pages, isStopped }: { readonly start: number; readonly pages: number; readonly isStopped: () => boolean },
): Promise<Walk> {
  let found = 0
  let end = start
  let last: Pending | undefined
  for (let left = pages; left > 0 && !isStopped(); ) {
    const page = await readPage(deps, queueKeys(queue, deps.partition).pending, end)
    const rescued = await rescue(deps, queue, page)
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
async function readPage(
  { redis, now = Date.now }: SweepDeps,
  pending: string,
  start: number,
): Promise<readonly Pending[]> {
  const words = await redis.zrange(pending, String(start), String(start + PAGE - 1), 'WITHSCORES')
  const page: Pending[] = []
  for (let i = 0; i < words.length; i += 2) {
    const [jobId, arrivedAtMs] = [words[i] as string, words[i + 1] as string]
    if (Number(arrivedAtMs) <= now() - MIN_AGE_MS) page.push({ jobId, arrivedAtMs })
  }
  return page
}

/** Returns the rank of the first payload after a cursor, whose own payload may be stored by now. */
async function rankAfter(redis: Redis, pending: string, cursor: string): Promise<number> {
  const [arrivedAtMs = '', jobId = ''] = cursor.split(' ')
  const rank = await redis.zrank(pending, jobId)
  return rank === null ? redis.zcount(pending, '-inf', `(${arrivedAtMs}`) : rank + 1
}

/** Adds the jobs of those payloads of a page that have none. Returns their number. */
async function rescue(
  { redis, logger, addJobs, partition }: SweepDeps,
  queue: QueueName,
  page: readonly Pending[],
): Promise<number> {
  if (page.length === 0) return 0
  const keys = queueKeys(queue, partition)
  let rescued = 0
  const orphans = await withoutJob(redis, keys, lanesOf(queue), page)
  await forEachConcurrently(orphans, { concurrency: CONCURRENT_RESCUES }, async jobId => {
    const stored = await redis.getBuffer(keys.payload(jobId))
    if (stored === null) return
    try {
      const payload = await wholePayload([stored])
      await addJobs(queue, [{ jobId, payload, frames: decodePayload(payload).length }])
      rescued++
    } catch (error) {
      // A payload that this version cannot read must not block the others.
      logger.warn({ queue, jobId, ...errorFields(error) }, 'could not add the job of a payload')
    }
  })
  return rescued
}

/** Returns the ids without a live job. One command for a page, because a sweep looks at thousands of payloads. */
async function withoutJob(
  redis: Redis,
  keys: QueueKeys,
  lanes: readonly Lane[],
  page: readonly Pending[],
): Promise<string[]> {
  const names = [
    ...lanes.map(lane => keys.failed(lane)),
    ...page.flatMap(({ jobId }) => lanes.map(lane => keys.job(lane, jobId))),
  ]
  const args = [lanes.length, ...page.map(({ jobId }) => jobId)]
  return (await SWEEP.run(redis, names, args)) as string[]
}
