import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { BULL_PREFIX, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import type { PayloadReader } from './payload-reader.ts'
import { FINISH_BATCH, FINISH_JOB, NAME_BATCH, SPLIT_BATCH, SPLIT_JOB } from './payload-scripts.ts'

/** A job as the worker that holds it knows it. */
export interface HeldJob {
  readonly jobId: string
  /** Text that BullMQ wrote into the lock of the job when this worker took it. */
  readonly token: string
}

/** The record of a named batch in Redis. */
export interface BatchRecord {
  /** In the order in which the batch was formed. */
  readonly jobIds: readonly string[]
  /** Tables that already contain the rows of this batch, because it is a half of a larger one. */
  readonly storedTables: readonly string[]
}

/** A batch that is recorded in Redis, with all its jobs, before its first insert. */
export interface NamedBatch extends BatchRecord {
  readonly batchId: string
}

/** Why a job could not be named: it is in another batch, it is already stored, or this worker has lost its lock. */
export type NamingConflict = 'named' | 'stored' | 'lost'

/** A payload for another queue, or one part of a payload that is split. */
export interface NewPayload {
  readonly jobId: string
  readonly payload: Buffer
  readonly frames: number
}

/** A payload that a finished job or batch passes on. Its job id derives from the id of that job or batch. */
export interface Move extends NewPayload {
  readonly queue: QueueName
  /** The move is left out if its queue is this many bytes behind. For payloads that the service can do without. */
  readonly backlogLimitBytes?: number
}

/** Requests and bytes that a finished job or batch adds to the counters of its queue. */
export interface DoneCounts {
  readonly frames: number
  readonly bytes: number
}

/** The payloads of one queue, and the batches they are in. */
export interface PayloadStore {
  /** Returns the batch of a job if it is named, else its payload. Both are null when the job is already stored. */
  look(jobId: string): Promise<{ batchId: string | null; payload: Buffer | null }>
  /** Returns the payload of a job, or null if the job is already stored. */
  payload(jobId: string): Promise<Buffer | null>
  /** Returns the memory of a payload to the reader. Neither the payload nor its frames may be used afterwards. */
  giveBack(payload: Buffer): void
  /** Returns the record of a named batch, or undefined if the batch is finished or split. */
  batch(batchId: string): Promise<BatchRecord | undefined>
  /** Returns whether this worker still holds the locks of all these jobs. */
  holdsLocks(jobs: readonly HeldJob[]): Promise<boolean>
  /** Names a batch, for all its jobs or for none. Returns the jobs in the way; the batch is named if there are none. */
  nameBatch(batchId: string, jobs: readonly HeldJob[]): Promise<Map<string, NamingConflict>>
  /**
   * Deletes the payloads and the record of a stored batch and stores the moves, in one step. Returns false if another
   * worker has done so before.
   */
  finishBatch(batch: NamedBatch, done: DoneCounts, moves?: readonly Move[]): Promise<boolean>
  /** Does the same for a job that was processed without a batch. */
  finishJob(jobId: string, done: DoneCounts, moves?: readonly Move[]): Promise<boolean>
  /** Replaces a named batch by two. Returns false if another worker has finished or split it before. */
  splitBatch(batchId: string, halves: readonly NamedBatch[]): Promise<boolean>
  /** Replaces the only job of a batch by jobs with a part of its frames each, every one in a batch of its own. */
  splitJob(
    batch: NamedBatch,
    payloadBytes: number,
    parts: readonly (NewPayload & { batchId: string })[],
  ): Promise<boolean>
}

type ScriptArgument = string | number | Buffer

const SCRIPTS = {
  penstockNameBatch: NAME_BATCH,
  penstockFinishBatch: FINISH_BATCH,
  penstockFinishJob: FINISH_JOB,
  penstockSplitBatch: SPLIT_BATCH,
  penstockSplitJob: SPLIT_JOB,
}
type ScriptName = keyof typeof SCRIPTS
type ScriptCommands = Record<ScriptName, (...args: ScriptArgument[]) => Promise<unknown>>

/**
 * The payloads of one queue in Redis. Every change is one script, so that a worker that dies leaves the state before the
 * change or the state after it. Every script may be sent twice.
 */
export class RedisPayloadStore implements PayloadStore {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #bullPrefix: string
  readonly #reader: Pick<PayloadReader, 'read' | 'giveBack'>

  /** `reader` is how payloads are read; without it, each read allocates its own buffer. */
  constructor(redis: Redis, queue: QueueName, reader?: Pick<PayloadReader, 'read' | 'giveBack'>) {
    this.#redis = redis
    this.#keys = queueKeys(queue)
    this.#bullPrefix = `${BULL_PREFIX}:${queue}:`
    this.#reader = reader ?? { read: key => redis.getBuffer(key), giveBack() {} }
    for (const [name, script] of Object.entries(SCRIPTS)) redis.defineCommand(name, script)
  }

  async look(jobId: string): Promise<{ batchId: string | null; payload: Buffer | null }> {
    // The order does not matter, nor what happens between the two reads: a job that is named or stored cannot be named again.
    const [batchId, payload] = await Promise.all([
      this.#redis.hget(this.#keys.batchOf, jobId),
      this.#reader.read(this.#keys.payload(jobId)),
    ])
    if (batchId === null || payload === null) return { batchId, payload }
    // The payload is fetched again with its batch. Waiting for that must not hold memory.
    this.#reader.giveBack(payload)
    return { batchId, payload: null }
  }

  payload(jobId: string): Promise<Buffer | null> {
    return this.#reader.read(this.#keys.payload(jobId))
  }

  giveBack(payload: Buffer): void {
    this.#reader.giveBack(payload)
  }

  async batch(batchId: string): Promise<BatchRecord | undefined> {
    const record = await this.#redis.hget(this.#keys.batches, batchId)
    return record === null ? undefined : (JSON.parse(record) as BatchRecord)
  }

  async holdsLocks(jobs: readonly HeldJob[]): Promise<boolean> {
    const tokens = await this.#redis.mget(jobs.map(job => this.#keys.lock(job.jobId)))
    return jobs.every((job, i) => tokens[i] === job.token)
  }

  async nameBatch(batchId: string, jobs: readonly HeldJob[]): Promise<Map<string, NamingConflict>> {
    const { batchOf, batches, payloadPrefix } = this.#keys
    const record = recordOf({ jobIds: jobs.map(job => job.jobId), storedTables: [] })
    const held = jobs.flatMap(job => [job.jobId, job.token])
    const keysAndPrefixes = [batchOf, batches, payloadPrefix, this.#bullPrefix]
    const pairs = (await this.#run('penstockNameBatch', ...keysAndPrefixes, batchId, record, ...held)) as string[]
    const conflicts = new Map<string, NamingConflict>()
    for (let i = 0; i < pairs.length; i += 2) conflicts.set(pairs[i] as string, pairs[i + 1] as NamingConflict)
    return conflicts
  }

  async finishBatch(batch: NamedBatch, done: DoneCounts, moves: readonly Move[] = []): Promise<boolean> {
    const { batchOf, batches, flow, payloadPrefix } = this.#keys
    const args = [batch.batchId, done.frames, done.bytes, batch.jobIds.length, ...batch.jobIds]
    const reply = await this.#run(
      'penstockFinishBatch',
      ...[batchOf, batches, flow, payloadPrefix],
      ...args,
      ...moves.flatMap(moveArguments),
    )
    return reply === 1
  }

  async finishJob(jobId: string, done: DoneCounts, moves: readonly Move[] = []): Promise<boolean> {
    const keys = [this.#keys.payload(jobId), this.#keys.flow]
    const args = [done.frames, done.bytes, ...moves.flatMap(moveArguments)]
    return (await this.#run('penstockFinishJob', ...keys, ...args)) === 1
  }

  async splitBatch(batchId: string, halves: readonly NamedBatch[]): Promise<boolean> {
    const args = halves.flatMap(half => [half.batchId, recordOf(half), half.jobIds.length, ...half.jobIds])
    return (await this.#run('penstockSplitBatch', this.#keys.batchOf, this.#keys.batches, batchId, ...args)) === 1
  }

  async splitJob(
    batch: NamedBatch,
    payloadBytes: number,
    parts: readonly (NewPayload & { batchId: string })[],
  ): Promise<boolean> {
    const [jobId] = batch.jobIds
    if (jobId === undefined || batch.jobIds.length !== 1)
      throw new RangeError('splitJob needs a batch of exactly one job')
    const { batchOf, batches, flow, payloadPrefix } = this.#keys
    const growth = parts.reduce((sum, { payload }) => sum + payload.length, -payloadBytes)
    const args = parts.flatMap(part => [
      part.jobId,
      part.batchId,
      recordOf({ jobIds: [part.jobId], storedTables: batch.storedTables }),
      part.payload,
    ])
    const reply = await this.#run(
      'penstockSplitJob',
      ...[batchOf, batches, flow, payloadPrefix],
      ...[batch.batchId, jobId, growth],
      ...args,
    )
    return reply === 1
  }

  #run(name: ScriptName, ...args: ScriptArgument[]): Promise<unknown> {
    return (this.#redis as unknown as ScriptCommands)[name](...args)
  }
}

function moveArguments({ queue, jobId, payload, frames, backlogLimitBytes = 0 }: Move): ScriptArgument[] {
  const keys = queueKeys(queue)
  return [keys.payload(jobId), payload, keys.flow, frames, payload.length, backlogLimitBytes]
}

function recordOf({ jobIds, storedTables }: BatchRecord): string {
  return JSON.stringify({ jobIds, storedTables } satisfies BatchRecord)
}
