import { createIORedisClient, Job, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import { JOB_OPTIONS, type Lane, openQueue } from '../../shared/queue/queue.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { RedisTransactions, type ReplicaWait, type Transaction } from './redis-transaction.ts'

/** How long the second attempt to add a job waits for Redis. The sweeper adds the job if that fails too. */
const RETRY_WITHIN_MS = 2_000

/** A job as it is added to its lane. */
export interface NewJob {
  readonly jobId: string
  readonly data: CommitJob
  /** A lower number goes first. 0 for a lane in the order of arrival. */
  readonly priority: number
}

/** Adds jobs to one lane of a queue, in one transaction with the data that they refer to or after it. */
export interface JobWriter {
  /** False while Redis is unavailable: a write would fail. */
  readonly isUsable: boolean
  /** Resolves when Redis is available. The promise of a writer that is usable has resolved. */
  whenUsable(): Promise<void>
  /**
   * Sends a transaction, and the job in it if there is one, before it returns. Resolves with the reply of its last command once
   * Redis has run and fsynced it. Rejects if one of the commands failed, or after `timeoutMs`. A job that could not be added is
   * only logged: the sweeper adds the job of every accepted payload. With `wait`, resolves once these replicas have it too.
   */
  write(transaction: Transaction, timeoutMs: number, job?: NewJob, wait?: ReplicaWait): Promise<unknown>
  /**
   * Adds the job of a payload that is accepted, at the second attempt if Redis was unavailable. Never rejects: the sweeper adds the
   * job of every accepted payload.
   */
  add(job: NewJob): Promise<void>
  /**
   * Replaces the connection. A stalled connection would delay the next writes by the full timeout, while a new one
   * fails at once as long as Redis is unavailable.
   */
  reconnect(): void
}

/** The collaborators of a job writer. `redis` is a producer's connection (`connectProducer`). */
interface JobWriterDeps {
  readonly redis: Redis
  readonly queue: RedisQueue
  readonly lane: Lane
  readonly logger: Logger
}

/** Creates the job writer of a lane. */
export function createJobWriter(deps: JobWriterDeps): JobWriter {
  const { redis, logger } = deps
  const bull = createIORedisClient(redis)
  const transactions = new RedisTransactions(redis)
  let queue: Queue<CommitJob> | undefined
  let usable = Promise.withResolvers<void>()
  let isUsable = false

  if (redis.status === 'ready') open()
  redis.on('ready', open)
  redis.on('close', markUnusable)

  /** Has BullMQ load its scripts, once. If the connection is lost meanwhile, the next "ready" starts it again. */
  function open(): void {
    if (queue !== undefined) {
      markUsable()
      return
    }
    const opened = openQueue(redis, deps.queue.keys, deps.lane)
    opened.on('error', error => logger.debug(errorFields(error), 'queue error'))
    opened.waitUntilReady().then(
      () => {
        queue = opened
        if (redis.status === 'ready') markUsable()
      },
      () => void opened.close(),
    )
  }

  function markUsable(): void {
    isUsable = true
    usable.resolve()
  }

  function markUnusable(): void {
    if (isUsable) usable = Promise.withResolvers<void>()
    isUsable = false
  }

  function reconnect(): void {
    if (isUsable) redis.disconnect(true)
    markUnusable()
  }

  function jobOf({ jobId, data, priority }: NewJob): Job<CommitJob> {
    if (queue === undefined) throw new TransientError('the queue is not open yet')
    const options = priority === 0 ? JOB_OPTIONS : { ...JOB_OPTIONS, priority }
    return new Job<CommitJob>(queue, 'commit', data, options, jobId)
  }

  function reportMissingJob(error: unknown): void {
    logger.warn({ queue: deps.queue.name, ...errorFields(error) }, 'a job could not be added; the sweeper will add it')
  }

  return {
    get isUsable() {
      return isUsable
    },
    whenUsable: () => usable.promise,
    async write(transaction, timeoutMs, newJob, wait) {
      const job = newJob && jobOf(newJob)
      const last = job && (async () => job.addJob(bull))
      const replies = await transactions.run(transaction, { timeoutMs, last, wait })
      const { commands } = transaction
      for (let i = 0; i < commands; i++) if (replies[i] instanceof Error) throw replies[i]
      if (replies[commands] instanceof Error) {
        reportMissingJob(replies[commands])
        // A new connection sends BullMQ's scripts again, in case Redis has lost them.
        reconnect()
      }
      return replies[commands - 1]
    },
    async add(newJob) {
      try {
        await jobOf(newJob).addJob(bull)
      } catch {
        await withDeadline(usable.promise, RETRY_WITHIN_MS, 'redis was not connected again in time')
          .then(() => jobOf(newJob).addJob(bull))
          .catch(reportMissingJob)
      }
    },
    reconnect,
  }
}
