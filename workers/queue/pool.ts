import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'bullmq'
import { type CommitJob, commitJobSchema } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { retryDelayMs } from '../../shared/concurrency/retry.ts'
import { BULL_PREFIX, JOB_OPTIONS } from '../../shared/queue/queue.ts'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { HeldJob } from './payload-store.ts'

export interface Pool {
  readonly queue: QueueName
  /** Jobs that this process holds now. */
  readonly activeJobs: number
  /** When a job last began, ended or was attempted again; a pool with jobs and no progress is wedged. */
  readonly lastProgressAt: number
  /** Takes no more jobs, and waits for those it holds. */
  close(): Promise<void>
}

export interface PoolDeps {
  readonly redisUrl: string
  readonly logger: Logger
  /** Settles when the payload is stored or dead-lettered; throws to have the job retried later. */
  readonly process: (job: HeldJob, payloadBytes: number) => Promise<void>
  readonly onClosing?: () => void
  readonly now?: () => number
}

export interface PoolOptions {
  readonly concurrency: number
  readonly lockMs: number
  readonly stalledCheckMs: number
}

/** How long a worker waits for its next try when Redis answered a fetch with an error. */
const FETCH_RETRY_MS = 1_000

/** BullMQ fetches again at once after an error that is not the connection's: 8,000 times a second while Redis is full. */
class PatientWorker extends Worker<CommitJob> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      if (!this.closing) await delay(FETCH_RETRY_MS)
      throw error
    }
  }
}

/** Consumes one queue with BullMQ. Jobs are retried without limit; a job whose worker died is taken up by another. */
export function startPool(queue: QueueName, deps: PoolDeps, options: PoolOptions): Pool & { progress(): void } {
  const { logger, now = Date.now } = deps
  const connection = connectConsumer(deps.redisUrl, logger)
  let activeJobs = 0
  let lastProgressAt = now()

  const worker = new PatientWorker(
    queue,
    async (job, token) => {
      if (job.id === undefined || token === undefined) throw new TransientError('a job came without its id or lock')
      activeJobs++
      lastProgressAt = now()
      try {
        await deps.process({ jobId: job.id, token }, commitJobSchema.parse(job.data).bytes)
      } finally {
        activeJobs--
        lastProgressAt = now()
      }
    },
    {
      connection,
      prefix: BULL_PREFIX,
      concurrency: options.concurrency,
      lockDuration: options.lockMs,
      stalledInterval: options.stalledCheckMs,
      maxStalledCount: Number(JOB_OPTIONS.attempts),
      removeOnComplete: { count: 0 },
      settings: { backoffStrategy: retryDelayMs },
      runRetryDelay: 1_000,
    },
  )
  worker.on('error', error => logger.warn({ queue, error: error.message }, 'worker error'))
  worker.on('failed', (job, error) => {
    logger.warn({ queue, jobId: job?.id, attempt: job?.attemptsMade, error: error.message }, 'job will be retried')
  })

  return {
    queue,
    get activeJobs() {
      return activeJobs
    },
    get lastProgressAt() {
      return lastProgressAt
    },
    progress() {
      lastProgressAt = now()
    },
    async close() {
      const closed = worker.close()
      deps.onClosing?.()
      await closed
      connection.disconnect()
    },
  }
}
