import { setTimeout as delay } from 'node:timers/promises'
import { type Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { COMMIT_JOB_VERSION, type CommitJob, commitJobSchema } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { retryDelayMs } from '../../shared/concurrency/retry.ts'
import { JOB_OPTIONS, type Lane, lanesOf, OPEN_PAYLOAD_BYTES, queueKeys } from '../../shared/queue/queue.ts'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { HeldJob } from './payloads/payload-store.ts'

/** A job that a pool has taken. */
export interface TakenJob extends HeldJob {
  /** The most bytes that the payload has. Requests may have joined it since its job was added. */
  readonly payloadBytes: number
  /** How often a worker lost the job without finishing it, usually because its process was killed. */
  readonly losses: number
}

/** The consumer of one queue. */
export interface Pool {
  readonly queue: QueueName
  /** Jobs in progress in this process. */
  readonly activeJobs: number
  /** Time of the last step of a job that succeeded, in Unix ms. */
  readonly lastProgressAt: number
  /** Time of the last attempt of a step, successful or not, in Unix ms. */
  readonly lastAttemptAt: number
  /** Jobs that failed and are processed again later, since the start. */
  readonly jobRetries: number
  /** Attempts of a store operation after one that failed, since the start. */
  readonly storeRetries: number
  /** Takes no more jobs, and waits for the jobs in progress. */
  close(): Promise<void>
}

/** Dependencies of a pool. */
export interface PoolDeps {
  readonly redisUrl: string
  readonly logger: Logger
  /** Settles when the payload is stored or dead-lettered. The job is retried later if it throws. */
  readonly process: (job: TakenJob) => Promise<void>
  /** Runs when the pool takes no more jobs and waits for those in progress. */
  readonly onClosing?: () => void
  /** Runs when no job is in progress any more. */
  readonly onClosed?: () => Promise<void>
  readonly now?: () => number
}

/** BullMQ options of a pool. */
export interface PoolOptions {
  /** Jobs of each lane in progress at the same time. */
  readonly concurrency: number
  readonly lockMs: number
  readonly stalledCheckMs: number
}

/**
 * Connects a worker whose scripts, BullMQ's included, Redis runs even if its memory is full. Taking and finishing jobs is
 * what frees the memory, and needs little of it.
 */
function connectWorker(url: string, logger: Logger): Redis {
  const connection = connectConsumer(url, logger)
  const define = connection.defineCommand.bind(connection)
  connection.defineCommand = (name, script) => define(name, { ...script, lua: `#!lua flags=allow-oom\n${script.lua}` })
  return connection
}

/** Delay before the next fetch after Redis returned an error. */
const FETCH_RETRY_MS = 1_000

/**
 * Delays the next fetch after an error. BullMQ itself fetches again at once unless the connection failed: 8,000 times a
 * second while Redis refuses writes, for example because its disk is full.
 */
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

/** A pool as the code that starts it sees it. */
export interface StartedPool extends Pool {
  /** Notes that a step of a job succeeded. */
  progress(): void
  /** Notes that a step of a job is attempted, and for which time in a row. */
  attempted(attempt: number): void
}

/**
 * Consumes both lanes of one queue with BullMQ. Jobs are retried without limit. Another worker takes up the job of a worker
 * that died.
 */
export function startPool(queue: QueueName, deps: PoolDeps, options: PoolOptions): StartedPool {
  const { logger, now = Date.now } = deps
  const connection = connectWorker(deps.redisUrl, logger)
  let activeJobs = 0
  let lastProgressAt = now()
  let lastAttemptAt = now()
  let jobRetries = 0
  let storeRetries = 0

  async function processJob(lane: Lane, job: Job<CommitJob>, token: string | undefined): Promise<void> {
    if (job.id === undefined || token === undefined)
      throw new TransientError('BullMQ delivered a job without an id or a lock')
    activeJobs++
    lastAttemptAt = now()
    try {
      const { version = COMMIT_JOB_VERSION, bytes } = commitJobSchema.parse(job.data)
      if (version > COMMIT_JOB_VERSION)
        throw new TransientError(`job version ${version} is newer than ${COMMIT_JOB_VERSION}`)
      const payloadBytes = Math.max(bytes, OPEN_PAYLOAD_BYTES)
      await deps.process({ jobId: job.id, lane, token, payloadBytes, losses: job.stalledCounter })
      lastProgressAt = now()
    } finally {
      activeJobs--
      lastAttemptAt = now()
    }
  }

  const workers = lanesOf(queue).map(lane => {
    const worker = new PatientWorker(lane, (job, token) => processJob(lane, job, token), {
      connection,
      prefix: queueKeys(queue).bull,
      concurrency: options.concurrency,
      lockDuration: options.lockMs,
      stalledInterval: options.stalledCheckMs,
      maxStalledCount: Number(JOB_OPTIONS.attempts),
      removeOnComplete: { count: 0 },
      settings: { backoffStrategy: retryDelayMs },
      runRetryDelay: 1_000,
    })
    worker.on('error', error => logger.warn({ queue, lane, ...errorFields(error) }, 'worker error'))
    worker.on('failed', (job, error) => {
      const attempt = job?.attemptsMade
      jobRetries++
      logger.warn({ queue, lane, jobId: job?.id, attempt, ...errorFields(error) }, 'job will be retried')
    })
    return worker
  })

  return {
    queue,
    get activeJobs() {
      return activeJobs
    },
    get lastProgressAt() {
      return lastProgressAt
    },
    get lastAttemptAt() {
      return lastAttemptAt
    },
    get jobRetries() {
      return jobRetries
    },
    get storeRetries() {
      return storeRetries
    },
    progress() {
      lastProgressAt = now()
    },
    attempted(attempt) {
      lastAttemptAt = now()
      if (attempt > 1) storeRetries++
    },
    async close() {
      const closed = Promise.all(workers.map(worker => worker.close()))
      deps.onClosing?.()
      await closed
      connection.disconnect()
      await deps.onClosed?.()
    },
  }
}
