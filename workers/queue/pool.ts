import { setTimeout as delay } from 'node:timers/promises'
import { type Job, type Processor, Worker, type WorkerOptions } from 'bullmq'
import type { Redis } from 'ioredis'
import { COMMIT_JOB_VERSION, type CommitJob, commitJobSchema } from '../../schemas/queues/jobs.ts'
import type { PoolName, QueueName } from '../../schemas/queues/names.ts'
import { retryDelayMs } from '../../shared/concurrency/retry.ts'
import { JOB_OPTIONS, type Lane, lanesOf, OPEN_PAYLOAD_BYTES } from '../../shared/queue/queue.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { connectConsumer, usableWhenFull } from '../../shared/queue/redis.ts'
import type { QueueFeed } from '../../shared/queue/registry/queue-feed.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { LockedJob } from './payloads/payload-store.ts'

/** A job that a pool has taken. */
export interface TakenJob extends LockedJob {
  /** The most bytes that the payload has. Requests may have joined it since its job was added. */
  readonly payloadBytes: number
  /** How often a worker lost the job without finishing it, usually because its process was killed. */
  readonly losses: number
  /** Why an operator has decided that the requests become dead letters without being decoded. Undefined otherwise. */
  readonly setAside?: string | undefined
}

/** The consumer of the queues of one name, or of the deliveries of alerts. */
export interface Pool {
  readonly queue: PoolName
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

type ProcessJob = (job: TakenJob) => Promise<void>

/** Dependencies of a pool. */
interface PoolDeps {
  readonly queues: QueueFeed
  readonly logger: Logger
  /**
   * Returns what processes the jobs of a queue. It settles when the payload is stored or dead-lettered. The job is retried later
   * if it throws. Called once for each queue, when it has its first job.
   */
  readonly open: (queue: RedisQueue) => ProcessJob
  /** Runs when the pool takes no more jobs and waits for those in progress. */
  readonly onClosing?: () => void
  /** Runs when no job is in progress any more. */
  readonly onClosed?: () => Promise<void>
  readonly now?: () => number
}

/** BullMQ options of a pool. */
export interface PoolOptions {
  /** Jobs of each lane in progress at the same time, which the equal queues share: each has at least one. */
  readonly concurrency: number
  readonly lockMs: number
  readonly stalledCheckMs: number
  /** Least time between two jobs of a lane that are taken as soon as they are added. Default: 0. */
  readonly restMs?: number
}

/** Delay before the next fetch after Redis returned an error. */
const FETCH_RETRY_MS = 1_000

/**
 * Rests between two jobs of a queue that it has emptied, so that requests meanwhile join one job (`ingest/commit/open-job.ts`). A
 * job costs worker and Redis the same for one request as for many. The first job after a pause is taken at once.
 *
 * It also delays the next fetch after an error. BullMQ itself fetches again at once unless the connection failed: 8,000 times a
 * second while Redis refuses writes, for example because its disk is full.
 */
class PatientWorker extends Worker<CommitJob> {
  readonly #restMs: number
  #takenAt = Number.NEGATIVE_INFINITY
  #isEmptied = false
  readonly #closed = new AbortController()

  constructor(lane: Lane, process: Processor<CommitJob>, options: WorkerOptions, restMs: number) {
    super(lane, process, options)
    this.#restMs = restMs
  }

  protected override async moveToActive(token: string, name?: string) {
    const restMs = this.#takenAt + this.#restMs - performance.now()
    if (this.#isEmptied && restMs > 0) await delay(restMs, undefined, { signal: this.#closed.signal }).catch(() => {})
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      if (!this.closing) await delay(FETCH_RETRY_MS)
      throw error
    }
  }

  protected override nextJobFromJobData(...next: Parameters<Worker<CommitJob>['nextJobFromJobData']>) {
    this.#isEmptied = !next[0]
    if (!this.#isEmptied) this.#takenAt = performance.now()
    return super.nextJobFromJobData(...next)
  }

  override close(force?: boolean): Promise<void> {
    this.#closed.abort()
    return super.close(force)
  }
}

/** A pool as the code that starts it sees it. */
interface StartedPool extends Pool {
  /** Notes that a step of a job succeeded. */
  progress(): void
  /** Notes that a step of a job is attempted, and for which time in a row. */
  attempted(attempt: number): void
}

/**
 * Consumes both lanes of all queues of one name with BullMQ: one BullMQ worker for each lane of a queue, with a connection of its
 * own on which it waits for jobs. Jobs are retried without limit. Another worker takes up
 * the job of a worker that died.
 */
class QueueConsumer implements StartedPool {
  readonly queue: QueueName
  readonly #deps: PoolDeps
  readonly #options: PoolOptions
  readonly #now: () => number
  /** Connections of this pool by the name of the server. */
  readonly #connections = new Map<string, Redis>()
  readonly #consumed = new Map<RedisQueue, readonly PatientWorker[]>()
  readonly #processing = new Map<RedisQueue, ProcessJob>()
  readonly #ending = new Set<Promise<unknown>>()
  readonly #unfollow: () => void
  activeJobs = 0
  lastProgressAt: number
  lastAttemptAt: number
  jobRetries = 0
  storeRetries = 0

  constructor(queue: QueueName, deps: PoolDeps, options: PoolOptions) {
    this.queue = queue
    this.#deps = deps
    this.#options = options
    this.#now = deps.now ?? Date.now
    this.lastProgressAt = this.#now()
    this.lastAttemptAt = this.#now()
    this.#unfollow = deps.queues.onChange(() => this.#follow())
    this.#follow()
  }

  progress(): void {
    this.lastProgressAt = this.#now()
  }

  attempted(attempt: number): void {
    this.lastAttemptAt = this.#now()
    if (attempt > 1) this.storeRetries++
  }

  async close(): Promise<void> {
    this.#unfollow()
    for (const queue of [...this.#consumed.keys()]) this.#end(queue)
    this.#deps.onClosing?.()
    await Promise.all(this.#ending)
    for (const connection of this.#connections.values()) connection.disconnect()
    await this.#deps.onClosed?.()
  }

  /** Starts and ends consumers, so that there is one for each queue. */
  #follow(): void {
    const current = this.#deps.queues.of(this.queue)
    for (const queue of this.#consumed.keys()) if (!current.includes(queue)) this.#end(queue)
    const concurrency = Math.max(1, Math.ceil(this.#options.concurrency / Math.max(1, current.length)))
    for (const worker of [...this.#consumed.values()].flat()) worker.concurrency = concurrency
    for (const queue of current) {
      if (this.#consumed.has(queue)) continue
      const workers = lanesOf(this.queue).map(lane => this.#consume(lane, queue, concurrency))
      this.#consumed.set(queue, workers)
    }
  }

  #end(queue: RedisQueue): void {
    const consumed = this.#consumed.get(queue)
    if (consumed === undefined) return
    this.#consumed.delete(queue)
    const ended = Promise.all(consumed.map(worker => worker.close())).finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  #consume(lane: Lane, queue: RedisQueue, concurrency: number): PatientWorker {
    const { logger } = this.#deps
    const { lockMs, stalledCheckMs, restMs = 0 } = this.#options
    const options: WorkerOptions = {
      connection: this.#connectionTo(queue),
      prefix: queue.keys.bull,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: Number(JOB_OPTIONS.attempts),
      removeOnComplete: { count: 0 },
      settings: { backoffStrategy: retryDelayMs },
      runRetryDelay: 1_000,
    }
    const process = (job: Job<CommitJob>, token?: string) => this.#process(lane, queue, job, token)
    const worker = new PatientWorker(lane, process, options, restMs)
    worker.on('error', error => logger.warn({ queue: queue.tag, lane, ...errorFields(error) }, 'worker error'))
    worker.on('failed', (job, error) => {
      const attempt = job?.attemptsMade
      this.jobRetries++
      const fields = { queue: queue.tag, lane, jobId: job?.id, attempt, ...errorFields(error) }
      logger.warn(fields, 'job will be retried')
    })
    return worker
  }

  #connectionTo({ server, address }: RedisQueue): Redis {
    let connection = this.#connections.get(server)
    if (connection === undefined) {
      connection = usableWhenFull(connectConsumer(address, this.#deps.logger))
      this.#connections.set(server, connection)
    }
    return connection
  }

  async #process(lane: Lane, queue: RedisQueue, job: Job<CommitJob>, token: string | undefined): Promise<void> {
    if (job.id === undefined || token === undefined)
      throw new TransientError('BullMQ delivered a job without an id or a lock')
    this.activeJobs++
    this.lastAttemptAt = this.#now()
    try {
      const { version = COMMIT_JOB_VERSION, bytes, setAside } = commitJobSchema.parse(job.data)
      if (version > COMMIT_JOB_VERSION)
        throw new TransientError(`job version ${version} is newer than ${COMMIT_JOB_VERSION}`)
      const payloadBytes = Math.max(bytes, OPEN_PAYLOAD_BYTES)
      const taken = { jobId: job.id, lane, token, payloadBytes, losses: job.stalledCounter, setAside }
      const process = this.#processing.get(queue) ?? this.#deps.open(queue)
      this.#processing.set(queue, process)
      await process(taken)
      this.lastProgressAt = this.#now()
    } finally {
      this.activeJobs--
      this.lastAttemptAt = this.#now()
    }
  }
}

/** Starts the consumer of the queues of a name. */
export function startPool(queue: QueueName, deps: PoolDeps, options: PoolOptions): StartedPool {
  return new QueueConsumer(queue, deps, options)
}
