import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { BULL_PREFIX, queueKeys } from '../../shared/queue/queue.ts'
import type { PayloadReader } from './payload-reader.ts'
import { FINISH_BATCH, FINISH_JOB, NAME_BATCH, SPLIT_BATCH, SPLIT_JOB } from './payload-scripts.ts'

/** A job as its holder knows it: the token is what BullMQ put into the job's lock when this worker took it. */
export interface HeldJob {
  readonly jobId: string
  readonly token: string
}

export interface BatchRecord {
  /** In the order in which the batch was formed. */
  readonly jobIds: readonly string[]
  /** Tables whose rows of this batch are stored already (the batch is a half of a larger one). */
  readonly storedTables: readonly string[]
}

export interface NamedBatch extends BatchRecord {
  readonly batchId: string
}

/** Why a job could not be named: it is in another batch, already stored, or no longer held by this worker. */
export type NamingConflict = 'named' | 'stored' | 'lost'

/** A payload on its way to another queue, or half of one that is split. */
export interface NewPayload {
  readonly jobId: string
  readonly payload: Buffer
  readonly frames: number
}

/** A payload that comes of a job or batch, for another queue. Its job id derives from that of the job or batch. */
export interface Move extends NewPayload {
  readonly queue: QueueName
  /** Left out where its queue is this many bytes behind: for what can be done without. */
  readonly backlogLimitBytes?: number
}

export interface PayloadStore {
  /** What there is to do for a job: its batch if it was named, else its payload; neither means that it is stored. */
  look(jobId: string): Promise<{ batchId: string | null; payload: Buffer | null }>
  payload(jobId: string): Promise<Buffer | null>
  /** The memory of a payload is for the next: nobody may look at it, or at a frame of it, any more. */
  giveBack(payload: Buffer): void
  batch(batchId: string): Promise<BatchRecord | undefined>
  holds(jobs: readonly HeldJob[]): Promise<boolean>
  /** Names a batch, for all its jobs or for none. Empty when named, else the jobs in the way. */
  nameBatch(batchId: string, jobs: readonly HeldJob[]): Promise<Map<string, NamingConflict>>
  /** Deletes what is stored, and moves what comes of it to other queues, at once. False: another worker had done it. */
  finishBatch(batch: NamedBatch, done: { frames: number; bytes: number }, moves?: readonly Move[]): Promise<boolean>
  /** The same for a job that was stored without a batch. */
  finishJob(jobId: string, done: { frames: number; bytes: number }, moves?: readonly Move[]): Promise<boolean>
  splitBatch(batchId: string, halves: readonly NamedBatch[]): Promise<boolean>
  /** Replaces the only job of a batch, with its payload, by jobs with a part of its frames each, every one in a batch of its own. */
  splitJob(
    batch: NamedBatch,
    payloadBytes: number,
    parts: readonly (NewPayload & { batchId: string })[],
  ): Promise<boolean>
}

/**
 * The state of a queue's payloads in Redis. Every change is one script, so that a worker that dies anywhere leaves
 * either what was before it or what comes after, and every script may be sent twice.
 */
export function createPayloadStore(
  redis: Redis,
  queue: QueueName,
  reader: Pick<PayloadReader, 'read' | 'giveBack'> = { read: key => redis.getBuffer(key), giveBack() {} },
): PayloadStore {
  const keys = queueKeys(queue)
  const bullPrefix = `${BULL_PREFIX}:${queue}:`
  const define = (name: string, script: { numberOfKeys: number; lua: string }) => {
    redis.defineCommand(name, script)
    return (...args: (string | number | Buffer)[]): Promise<unknown> =>
      (redis as unknown as Record<string, (...args: (string | number | Buffer)[]) => Promise<unknown>>)[name]?.(
        ...args,
      ) as Promise<unknown>
  }
  const nameBatch = define('penstockNameBatch', NAME_BATCH)
  const finishBatch = define('penstockFinishBatch', FINISH_BATCH)
  const finishJob = define('penstockFinishJob', FINISH_JOB)
  const splitBatch = define('penstockSplitBatch', SPLIT_BATCH)
  const splitJob = define('penstockSplitJob', SPLIT_JOB)

  return {
    async look(jobId) {
      // In either order, and something may happen between the two: what is then named or stored cannot be named again.
      const [batchId, payload] = await Promise.all([redis.hget(keys.batchOf, jobId), reader.read(keys.payload(jobId))])
      if (batchId === null || payload === null) return { batchId, payload }
      // With its batch a payload is fetched again: who waits for that holds nothing.
      reader.giveBack(payload)
      return { batchId, payload: null }
    },
    payload: jobId => reader.read(keys.payload(jobId)),
    giveBack: payload => reader.giveBack(payload),
    async batch(batchId) {
      const record = await redis.hget(keys.batches, batchId)
      return record === null ? undefined : (JSON.parse(record) as BatchRecord)
    },
    async holds(jobs) {
      const tokens = await redis.mget(jobs.map(job => keys.lock(job.jobId)))
      return jobs.every((job, i) => tokens[i] === job.token)
    },
    async nameBatch(batchId, jobs) {
      const record = recordOf({ jobIds: jobs.map(job => job.jobId), storedTables: [] })
      const held = jobs.flatMap(job => [job.jobId, job.token])
      const reply = await nameBatch(
        keys.batchOf,
        keys.batches,
        keys.payloadPrefix,
        bullPrefix,
        batchId,
        record,
        ...held,
      )
      const conflicts = new Map<string, NamingConflict>()
      const pairs = reply as string[]
      for (let i = 0; i < pairs.length; i += 2) conflicts.set(pairs[i] as string, pairs[i + 1] as NamingConflict)
      return conflicts
    },
    async finishBatch(batch, done, moves = []) {
      const reply = await finishBatch(
        keys.batchOf,
        keys.batches,
        keys.flow,
        keys.payloadPrefix,
        batch.batchId,
        done.frames,
        done.bytes,
        batch.jobIds.length,
        ...batch.jobIds,
        ...moves.flatMap(moveArguments),
      )
      return reply === 1
    },
    async finishJob(jobId, done, moves = []) {
      const args = moves.flatMap(moveArguments)
      return (await finishJob(keys.payload(jobId), keys.flow, done.frames, done.bytes, ...args)) === 1
    },
    async splitBatch(batchId, halves) {
      const args = halves.flatMap(half => [half.batchId, recordOf(half), half.jobIds.length, ...half.jobIds])
      return (await splitBatch(keys.batchOf, keys.batches, batchId, ...args)) === 1
    },
    async splitJob(batch, payloadBytes, parts) {
      const [jobId] = batch.jobIds
      if (jobId === undefined || batch.jobIds.length !== 1)
        throw new RangeError('only a batch of one job can be split so')
      const args = parts.flatMap(part => [
        part.jobId,
        part.batchId,
        recordOf({ jobIds: [part.jobId], storedTables: batch.storedTables }),
        part.payload,
      ])
      const growth = parts.reduce((sum, { payload }) => sum + payload.length, -payloadBytes)
      const reply = await splitJob(
        keys.batchOf,
        keys.batches,
        keys.flow,
        keys.payloadPrefix,
        batch.batchId,
        jobId,
        growth,
        ...args,
      )
      return reply === 1
    },
  }
}

function moveArguments({ queue, jobId, payload, frames, backlogLimitBytes = 0 }: Move): (string | number | Buffer)[] {
  const keys = queueKeys(queue)
  return [keys.payload(jobId), payload, keys.flow, frames, payload.length, backlogLimitBytes]
}

function recordOf({ jobIds, storedTables }: BatchRecord): string {
  return JSON.stringify({ jobIds, storedTables } satisfies BatchRecord)
}
