import type { Queue } from 'bullmq'
import { type CommitJob, commitJobSchema } from '../../schemas/queues/jobs.ts'
import { COMMIT_BYTES, ReceiptIds, receiptSeal } from '../../shared/ids/receipt.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { isPacked, wholePayload } from '../../shared/queue/packed-payload.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { type Lane, lanesOf, openQueue } from '../../shared/queue/queue.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'

/** A lane of one of the equal queues of a name, which is one queue of BullMQ. */
export interface QueueLane {
  readonly queue: RedisQueue
  readonly lane: Lane
}

/** Returns the lanes of queues. */
export function lanesIn(queues: readonly RedisQueue[]): QueueLane[] {
  return queues.flatMap(queue => lanesOf(queue.name).map(lane => ({ queue, lane })))
}

/** Opens a lane with BullMQ. The caller closes it. */
export function openBull({ queue, lane }: QueueLane): Queue<CommitJob> {
  const bull = openQueue(queue.redis, queue.keys, lane)
  // A caller sees the failure of its own call. Without a listener, BullMQ prints to stderr.
  bull.on('error', () => undefined)
  return bull
}

/**
 * States of jobs, those first that may need a hand.
 *
 * - stuck: a worker has taken the job and ended. The next check of a worker gives it to another
 * - failed: BullMQ does not repeat it
 * - delayed: an attempt has failed, and the next one follows
 * - active: in progress in a worker
 * - waiting: no worker has taken it
 */
export const JOB_STATES = ['stuck', 'failed', 'delayed', 'active', 'waiting'] as const
/** State of a job. */
export type JobState = (typeof JOB_STATES)[number]

/** A job of a lane. */
export interface JobPlace extends QueueLane {
  readonly id: string
  readonly state: JobState
}

/** Returns how many jobs of the queues are stuck. */
export async function countStuckJobs(queues: readonly RedisQueue[]): Promise<number> {
  const counts = await Promise.all(lanesIn(queues).map(async lane => (await takenJobs(lane, 'stuck')).length))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Returns the jobs of a state, the oldest of each lane first, and at most `limit` of each lane. */
export async function findJobs(lanes: readonly QueueLane[], state: JobState, limit: number): Promise<JobPlace[]> {
  const found = lanes.map(async lane => {
    const ids = (await idsOf(lane, state, limit)).slice(0, limit)
    return ids.map(id => ({ ...lane, id, state }))
  })
  return (await Promise.all(found)).flat()
}

async function idsOf(at: QueueLane, state: JobState, limit: number): Promise<readonly string[]> {
  const { redis, keys } = at.queue
  switch (state) {
    case 'stuck':
    case 'active':
      return takenJobs(at, state)
    case 'failed':
      return redis.zrange(keys.failed(at.lane), '0', String(limit - 1))
    case 'delayed':
      return redis.zrange(keys.delayed(at.lane), '0', String(limit - 1))
    case 'waiting': {
      // The next job is the last one of the list. Jobs with a priority follow all of them.
      const waiting = await redis.lrange(keys.waiting(at.lane), -limit, -1)
      return [...waiting.reverse(), ...(await redis.zrange(keys.prioritized(at.lane), '0', String(limit - 1)))]
    }
  }
}

/** Returns the jobs that workers have taken: those with a lock (`active`), or without one (`stuck`). */
async function takenJobs({ queue: { redis, keys }, lane }: QueueLane, state: 'active' | 'stuck'): Promise<string[]> {
  const taken = await redis.lrange(keys.active(lane), 0, -1)
  if (taken.length === 0) return []
  const locks = await redis.mget(taken.map(id => keys.lock(lane, id)))
  return taken.filter((_, i) => (locks[i] === null) === (state === 'stuck'))
}

/** Returns where a job is, or undefined if no lane has it. */
export async function findJob(lanes: readonly QueueLane[], id: string): Promise<JobPlace | undefined> {
  for (const at of lanes) {
    const { redis, keys } = at.queue
    const { lane } = at
    // Other keys of BullMQ have the same beginning.
    const type = await redis.type(keys.job(lane, id))
    if (type !== 'hash' || (await redis.hexists(keys.job(lane, id), 'timestamp')) === 0) continue
    const [failedAt, delayedTo, position, lock] = await Promise.all([
      redis.zscore(keys.failed(lane), id),
      redis.zscore(keys.delayed(lane), id),
      redis.lpos(keys.active(lane), id),
      redis.exists(keys.lock(lane, id)),
    ])
    const taken = lock === 0 ? 'stuck' : 'active'
    const state = failedAt !== null ? 'failed' : delayedTo !== null ? 'delayed' : position === null ? 'waiting' : taken
    return { ...at, id, state }
  }
  return undefined
}

/** A job as an operator sees it. */
export interface DescribedJob {
  readonly id: string
  readonly queue: string
  /** Hash tag of the partition. */
  readonly partition: string
  readonly lane: Lane
  readonly state: JobState
  readonly ageSeconds: number
  readonly attempts: number
  /** How often a worker ended while it had the job. */
  readonly losses: number
  /** Why the last attempt failed. Empty if none has. */
  readonly reason: string
  /** Set if the requests of the job become dead letters when a worker takes it. */
  readonly setAside: string | undefined
  readonly hasPayload: boolean
  /** Requests in the payload, and the first of them. Absent without a payload, and if it cannot be read. */
  readonly requests?: number
  readonly workspaceId?: string
  readonly surfaceId?: string
  readonly receiptId?: string
}

/** Larger payloads are not read for a description. */
const MAX_READ_BYTES = 4 * 1024 * 1024

/** Describes a job. `receiptSecret` seals the ids of receipts. Returns undefined if the job is gone. */
export async function describeJob(
  { queue, lane, id, state }: JobPlace,
  receiptSecret: Buffer | undefined,
  nowMs: number,
): Promise<DescribedJob | undefined> {
  const { redis, keys } = queue
  const fields = ['timestamp', 'atm', 'stc', 'failedReason', 'data'] as const
  const [timestamp, attempts, losses, reason, data] = await redis.hmget(keys.job(lane, id), ...fields)
  if (timestamp == null) return undefined
  const [bytes, joined] = await Promise.all([redis.strlen(keys.payload(id)), redis.llen(keys.joined(id))])
  const frames = bytes > 0 && bytes <= MAX_READ_BYTES ? await readFrames(queue, id, joined) : undefined
  return {
    ...{ id, queue: queue.name, partition: queue.tag, lane, state },
    ageSeconds: Math.max(0, Math.round((nowMs - Number(timestamp)) / 1_000)),
    attempts: Number(attempts ?? 0),
    losses: Number(losses ?? 0),
    reason: reason ?? '',
    setAside: commitJobSchema.safeParse(parseJson(data ?? '')).data?.setAside,
    hasPayload: bytes > 0 || joined > 0,
    ...(frames && describeFrames(frames, receiptSecret)),
  }
}

/** Returns the requests of a job, or undefined if this version cannot read them. */
async function readFrames(
  { redis, keys }: RedisQueue,
  id: string,
  joined: number,
): Promise<PayloadFrame[] | undefined> {
  const first = await redis.getBuffer(keys.payload(id))
  if (first === null) return undefined
  const others = joined > 0 ? await redis.lrangeBuffer(keys.joined(id), 0, -1) : []
  try {
    return decodePayload(await wholePayload([first, ...others]))
  } catch (error) {
    if (error instanceof RangeError || isPacked(first)) return undefined
    throw error
  }
}

function describeFrames(frames: readonly PayloadFrame[], secret: Buffer | undefined): Partial<DescribedJob> {
  const [first] = frames
  if (first === undefined) return { requests: 0 }
  const { workspaceId, surfaceId, receipt } = first
  const receiptId = secret && receipt && receiptIdOf(secret, { workspaceId, surfaceId }, Buffer.from(receipt, 'latin1'))
  return { requests: frames.length, workspaceId, surfaceId, ...(receiptId && { receiptId }) }
}

function receiptIdOf(
  secret: Buffer,
  surface: { readonly workspaceId: string; readonly surfaceId: string },
  receipt: Buffer,
): string {
  const ids = new ReceiptIds(receipt.subarray(0, COMMIT_BYTES))
  return ids.write(receipt.readUInt32BE(COMMIT_BYTES), receiptSeal(secret, surface)).toString()
}
