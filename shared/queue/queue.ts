import { randomUUID } from 'node:crypto'
import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'

export const BULL_PREFIX = 'penstock:bull'

/**
 * Redis keys of one queue, beside BullMQ's own. A payload key exists exactly as long as its bytes are not yet stored.
 *
 * - payload: the framed requests of one job (string)
 * - batchOf: job id → id of the batch that names it (hash)
 * - batches: batch id → its record (hash)
 * - flow: what was accepted and what is done, in payloads and bytes, ever growing (hash)
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
export type QueueKeys = ReturnType<typeof queueKeys>

/**
 * Every job is retried for as long as it takes: a payload ends stored or dead-lettered, never given up.
 * The delays are the worker's (`retryDelayMs` of shared/concurrency).
 */
export const JOB_OPTIONS: JobsOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'custom' },
  removeOnComplete: true,
  removeOnFail: false,
  // BullMQ keeps the stack of every attempt otherwise, and there is no last attempt.
  stackTraceLimit: 1,
}

/** Opens the producer's side of a queue on a connection that is ready. */
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
 * A UUID of version 7 (RFC 9562): sorts by the time of its making, and within a millisecond by a 12-bit counter.
 * Job ids are made here, not by BullMQ, whose counter would restart with an emptied queue and give ids out twice.
 */
export function newJobId(now: number = Date.now()): string {
  if (now > lastMs) {
    lastMs = now
    sequence = 0
  } else if (++sequence > 0xfff) {
    lastMs++
    sequence = 0
  }
  // `randomUUID` draws from a cache of random bytes; 16 fresh ones cost a system call each time (20 µs, once a commit).
  const random = randomUUID()
  const time = lastMs.toString(16).padStart(12, '0')
  const counter = sequence.toString(16).padStart(3, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${random.slice(19)}`
}
