import { randomUUID } from 'node:crypto'
import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import { isAdmitted, type QueueName } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'

/**
 * The lanes of a queue, each of which is a BullMQ queue. Requests of a surface with little unfinished work take the
 * `express` lane. The others take the `bulk` lane, so that the backlog of one surface is not in front of the requests of
 * another.
 */
export const LANES = ['express', 'bulk'] as const
/** Name of a lane, which is also the name of its BullMQ queue. */
export type Lane = (typeof LANES)[number]

/** Returns the lanes of a queue. Queues that only workers write to have one. */
export function lanesOf(queue: QueueName): readonly Lane[] {
  return isAdmitted(queue) ? LANES : ['express']
}

/**
 * Returns the Redis keys of a queue, whose meaning is in the README. All have its hash tag, so that Redis Cluster keeps them on
 * one node and a script can use all of them. Equal queues of one name have different tags. Prices, pace, quota and the counters of
 * edges belong to all of them and have the default tag.
 */
export function queueKeys(name: QueueName, tag = `${name}.0`) {
  const root = `penstock:{${tag}}`
  const bull = `${root}:bull`
  const payloadPrefix = `${root}:payload:`
  return {
    payloadPrefix,
    payload: (jobId: string) => payloadPrefix + jobId,
    joined: (jobId: string) => `${root}:joined:${jobId}`,
    arriving: (jobId: string) => `${root}:arriving:${jobId}`,
    pending: `${root}:pending`,
    open: `${root}:open`,
    batchOf: `${root}:batch-of`,
    batches: `${root}:batches`,
    flow: `${root}:flow`,
    shares: `${root}:shares`,
    busy: `${root}:busy`,
    arrivals: `${root}:arrivals`,
    prices: `${root}:prices`,
    alone: (jobId: string) => `${root}:alone:${jobId}`,
    quota: (name: string) => `${root}:quota:${name}`,
    pace: (lane: Lane) => `${root}:pace:${lane}`,
    claims: (workspaceId: string, jobId: string) => `${root}:claims:${workspaceId}:${jobId}`,
    bull,
    job: (lane: Lane, jobId: string) => `${bull}:${lane}:${jobId}`,
    lock: (lane: Lane, jobId: string) => `${bull}:${lane}:${jobId}:lock`,
    waiting: (lane: Lane) => `${bull}:${lane}:wait`,
    prioritized: (lane: Lane) => `${bull}:${lane}:prioritized`,
    delayed: (lane: Lane) => `${bull}:${lane}:delayed`,
    active: (lane: Lane) => `${bull}:${lane}:active`,
    failed: (lane: Lane) => `${bull}:${lane}:failed`,
    marker: (lane: Lane) => `${bull}:${lane}:marker`,
    settings: (lane: Lane) => `${bull}:${lane}:meta`,
    mark: `${root}:mark`,
  }
}
/**
 * Keys of the sweeper of the installation, with a hash tag of their own.
 *
 * - lease: token of the process that sweeps, with an expiry (string)
 * - cursors: tag of a queue → score and job id of the payload that its walk has reached (hash)
 */
export const SWEEPER_KEYS = {
  lease: 'penstock:{sweeper}:lease',
  cursors: 'penstock:{sweeper}:cursors',
}

/** The Redis keys of a queue. */
export type QueueKeys = ReturnType<typeof queueKeys>

/** Returns the member of a surface in the sorted sets of a queue. */
export function shareMember(surface: { readonly workspaceId: string; readonly surfaceId: string }): string {
  return `${surface.workspaceId}/${surface.surfaceId}`
}

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

/** Opens the producer side of a lane of a queue on a ready connection. */
export function openQueue(redis: Redis, { bull }: Pick<QueueKeys, 'bull'>, lane: Lane): Queue<CommitJob> {
  return new Queue<CommitJob>(lane, {
    connection: redis,
    prefix: bull,
    defaultJobOptions: JOB_OPTIONS,
    streams: { events: { maxLen: 100 } },
  })
}

/**
 * The most bytes of a payload that further requests may join (`open`). A worker reserves this much memory for a job that was
 * smaller when it was added.
 */
export const OPEN_PAYLOAD_BYTES = MIB

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
