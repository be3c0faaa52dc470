import { randomUUID } from 'node:crypto'
import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'

/** Prefix of the Redis keys of BullMQ. */
export const BULL_PREFIX = 'penstock:bull'

/**
 * Returns the Redis keys of one queue. A payload key exists exactly until its bytes are stored.
 *
 * - payload: the framed requests of one job (string)
 * - batchOf: job id → id of the batch that names it (hash)
 * - batches: batch id → its record (hash)
 * - flow: counters of accepted and finished payloads and bytes, which only grow (hash)
 */
export function queueKeys(queue: QueueName) {
  const root = `penstock:queue:${queue}`
  const payloadPrefix = `${root}:payload:`
  return {
    payloadPrefix,
    payload: (jobId: string) => payloadPrefix + jobId,
    batchOf: `${root}:batch-of`,
    batches: `${root}:batches`,
    flow: `${root}:flow`,
    job: (jobId: string) => `${BULL_PREFIX}:${queue}:${jobId}`,
    lock: (jobId: string) => `${BULL_PREFIX}:${queue}:${jobId}:lock`,
    failed: `${BULL_PREFIX}:${queue}:failed`,
  }
}
/** The Redis keys of one queue. */
export type QueueKeys = ReturnType<typeof queueKeys>

/**
 * Options of every job. Jobs are retried without limit, so that each payload is stored or dead-lettered in the end. The
 * worker chooses the delays (`retryDelayMs` in shared/concurrency).
 */
export const JOB_OPTIONS: JobsOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'custom' },
  removeOnComplete: true,
  removeOnFail: false,
  // Otherwise BullMQ keeps the stack of every attempt, and there is no last attempt.
  stackTraceLimit: 1,
}

/** Opens the producer side of a queue on a ready connection. */
export function openQueue(redis: Redis, name: QueueName): Queue<CommitJob> {
  return new Queue<CommitJob>(name, {
    connection: redis,
    prefix: BULL_PREFIX,
    defaultJobOptions: JOB_OPTIONS,
    streams: { events: { maxLen: 100 } },
  })
}

let lastMs = 0
let sequence = 0

/**
 * Creates a UUID of version 7 (RFC 9562), which sorts by time and within a millisecond by a 12-bit counter. The counter of
 * BullMQ is not used, because it restarts with an emptied queue and would repeat ids.
 */
export function newJobId(now: number = Date.now()): string {
  if (now > lastMs) {
    lastMs = now
    sequence = 0
  } else if (++sequence > 0xfff) {
    lastMs++
    sequence = 0
  }
  // `randomUUID` has a cache of random bytes. Drawing 16 bytes each time costs a system call (20 µs per job).
  const random = randomUUID()
  const time = lastMs.toString(16).padStart(12, '0')
  const counter = sequence.toString(16).padStart(3, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${random.slice(19)}`
}
