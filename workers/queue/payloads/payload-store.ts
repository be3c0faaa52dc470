import type { Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { DAY_S } from '../../../schemas/units.ts'
import { PIECE_BYTES, writeInPieces } from '../../../shared/queue/large-values.ts'
import { wholePayload } from '../../../shared/queue/packed-payload.ts'
import { frameCost, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { type Lane, type QueueKeys, shareMember } from '../../../shared/queue/queue.ts'
import { queueScript } from '../../../shared/queue/queue-script.ts'
import type { RedisQueue } from '../../../shared/queue/queues.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import type { Script, ScriptArgument } from '../../../shared/runtime/redis/script.ts'
import { type BatchRecord, decodeRecord, encodeRecord, type Formation, type NamedBatch } from './batch-record.ts'
import type { ConfirmedScripts } from './confirmed-scripts.ts'
import { closeAndRead, type PayloadReader } from './payload-reader.ts'
import { writeAhead } from './write-ahead.ts'

/** A job whose lock this worker has. */
export interface LockedJob {
  readonly jobId: string
  /** The lane that this worker took the job from. */
  readonly lane: Lane
  /** Text that BullMQ wrote into the lock of the job when this worker took it. */
  readonly token: string
}

/**
 * Why a job could not be named: it is in another batch, it is already stored, or this worker has lost its lock, or the payload that
 * it has read, to a promoted replica that has it from before.
 */
type NamingConflict = 'named' | 'stored' | 'lost'

/** A payload for another queue, or one part of a payload that is split. */
export interface NewPayload {
  readonly jobId: string
  readonly payload: Buffer
  /** Size of a payload that is in Redis already, and not in `payload`. */
  readonly bytes?: number
  readonly frames: number
}

/** A part of a job that is split, and the batch that names it. */
export type JobPart = NewPayload & Pick<NamedBatch, 'batchId' | 'storedTables' | 'unstored'>

/** A payload that a finished job or batch passes on. Its job id derives from the id of that job or batch. */
export interface Move extends NewPayload {
  readonly queue: QueueName
  /** Cost that its requests add to the shares of their surfaces in that queue. */
  readonly shares: Shares
  /**
   * The move is left out if the bytes that its queue is behind, and the cost of its surfaces in it, are over this together. For
   * payloads that the service can do without.
   */
  readonly backlogLimitBytes?: number
  /** The key under which the payload was written (`writeAhead`). */
  readonly arrivingKey?: string
}

/** Returns the size of a payload that is not packed. */
export function sizeOf({ payload, bytes = payload.length }: NewPayload): number {
  return bytes
}

/** Cost by surface, the keys being members of the sorted set `shares` (`shareMember`). */
type Shares = ReadonlyMap<string, number>

/** Returns the cost of these requests by surface. */
export function sharesOf(frames: readonly PayloadFrame[]): Map<string, number> {
  const shares = new Map<string, number>()
  for (const frame of frames) addShare(shares, frame)
  return shares
}

/** Adds the cost of a request to the share of its surface. */
export function addShare(shares: Map<string, number>, frame: PayloadFrame): void {
  const member = shareMember(frame)
  shares.set(member, (shares.get(member) ?? 0) + frameCost(frame))
}

/** Amounts that a finished job or batch adds to the counters of its queue and takes from the shares of its surfaces. */
interface DoneCounts {
  readonly frames: number
  readonly bytes: number
  readonly shares: Shares
}

/** The outcome of finishing a job or a batch. */
interface Finished {
  /** False if another worker has finished it before. */
  readonly isFirst: boolean
  /** The moves that were left out because their queue is too far behind. */
  readonly leftOut: readonly Move[]
}

/** The payloads of one queue, and the batches they are in. */
export interface PayloadStore {
  /**
   * Returns the batch of a job if it is named, else its payload. Both are null when the job is already stored. No request
   * joins a payload that was read, so that it is the same whenever it is read again.
   */
  look(jobId: string): Promise<{ batchId: string | null; payload: Buffer | null }>
  /** Returns the payload of a job, or null if the job is already stored. */
  payload(jobId: string): Promise<Buffer | null>
  /** Returns the memory of a payload to the reader. Neither the payload nor its frames may be used afterwards. */
  giveBack(payload: Buffer): void
  /** Returns the record of a named batch, or undefined if the batch is finished or split. */
  batch(batchId: string): Promise<BatchRecord | undefined>
  /**
   * Resolves once replicas have the payload of a job as this worker has read it, or at once where none must. Throws a
   * TransientError if Redis has it otherwise, or if replicas do not confirm in time.
   */
  untilReplicated(job: LockedJob): Promise<void>
  /** Returns whether this worker still holds the locks of all these jobs. */
  holdsLocks(jobs: readonly LockedJob[]): Promise<boolean>
  /**
   * Names a batch, for all its jobs or for none, and records what is about to be inserted. Returns the jobs in the way; the
   * batch is named if there are none.
   */
  nameBatch(batchId: string, jobs: readonly LockedJob[], formed?: Formation): Promise<Map<string, NamingConflict>>
  /**
   * Records what is about to be inserted for a batch that was named without it. Returns what is recorded, which another
   * worker may have done before, or undefined if the batch is finished or split.
   */
  describeBatch(batch: NamedBatch, formed: Formation): Promise<Formation | undefined>
  /** Writes the payload of a move of `finishBatch` before it. The payload is forgotten if that does not follow in time. */
  writeAhead(move: Move): Promise<Move>
  /** Deletes the payloads and the record of a stored batch and stores the moves, in one step. */
  finishBatch(batch: NamedBatch, done: DoneCounts, moves?: readonly Move[]): Promise<Finished>
  /** Does the same for a job that was processed without a batch. */
  finishJob(jobId: string, done: DoneCounts, moves?: readonly Move[]): Promise<Finished>
  /** Counts that a suspected job is about to be decoded alone, and returns how often that has begun within a day. */
  countAlone(jobId: string): Promise<number>
  /** Ends that count, because the worker that decoded the job alone did not end. */
  forgetAlone(jobId: string): Promise<void>
  /** Replaces a named batch by others with the same jobs. Returns false if another worker has finished or split it before. */
  splitBatch(batchId: string, halves: readonly NamedBatch[]): Promise<boolean>
  /**
   * Replaces the first job of a batch by jobs with a part of its frames each, every one in a batch of its own. The other
   * jobs stay in the batch. Returns false if another worker has done so before.
   */
  splitJob(batch: NamedBatch, payloadBytes: number, parts: readonly JobPart[]): Promise<boolean>
}

const NAME = queueScript('name')
const CONFIRM_PAYLOAD = queueScript('confirm-payload')
const DESCRIBE_BATCH = queueScript('describe-batch')
const FINISH = queueScript('finish')
const SPLIT_BATCH = queueScript('split-batch')
const SPLIT_JOB = queueScript('split-job')

const ALONE_LIFETIME_S = DAY_S

/**
 * The payloads of a queue in Redis. Every change is one script, so that a worker that dies leaves the state
 * before the change or the state after it. Every script may be sent twice.
 */
export class RedisPayloadStore implements PayloadStore {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #queue: RedisQueue
  readonly #reader: Pick<PayloadReader, 'read' | 'giveBack'>
  readonly #confirmed: Pick<ConfirmedScripts, 'run'> | undefined

  /**
   * `reader` is how payloads are read; without it, each read allocates its own buffer. `confirmed` makes the replicas know a
   * batch before its rows are inserted.
   */
  constructor(
    queue: RedisQueue,
    reader?: Pick<PayloadReader, 'read' | 'giveBack'>,
    confirmed?: Pick<ConfirmedScripts, 'run'>,
  ) {
    const { redis } = queue
    this.#redis = redis
    this.#confirmed = confirmed
    this.#queue = queue
    this.#keys = queue.keys
    this.#reader = reader ?? { read: (keys, jobId) => readWhole(redis, keys, jobId), giveBack() {} }
  }

  async look(jobId: string): Promise<{ batchId: string | null; payload: Buffer | null }> {
    // The order does not matter, nor what happens between the two reads: a job that is named or stored cannot be named again.
    const [batchId, payload] = await Promise.all([this.#redis.hget(this.#keys.batchOf, jobId), this.payload(jobId)])
    if (batchId === null || payload === null) return { batchId, payload }
    // The payload is fetched again with its batch. Waiting for that must not hold memory.
    this.#reader.giveBack(payload)
    return { batchId, payload: null }
  }

  payload(jobId: string): Promise<Buffer | null> {
    return this.#reader.read(this.#keys, jobId)
  }

  giveBack(payload: Buffer): void {
    this.#reader.giveBack(payload)
  }

  async batch(batchId: string): Promise<BatchRecord | undefined> {
    const { batches } = this.#keys
    // The worker that named it may have died before the replicas knew it, and this one may insert its rows.
    const read = this.#confirmed?.run(DESCRIBE_BATCH, [batches], [batchId])
    const record = (await (read ?? this.#redis.hget(batches, batchId))) as string | null
    return record === null ? undefined : decodeRecord(record)
  }

  async untilReplicated({ jobId, lane, token }: LockedJob): Promise<void> {
    if (this.#confirmed === undefined) return
    const { payload, lock, open, flow } = this.#keys
    const keys = [payload(jobId), lock(lane, jobId), open, flow]
    const isAsRead = await this.#confirmed.run(CONFIRM_PAYLOAD, keys, [jobId, token])
    if (isAsRead !== 1) throw new TransientError('the payload is not as it was read, or the lock of its job was lost')
  }

  async holdsLocks(jobs: readonly LockedJob[]): Promise<boolean> {
    const tokens = await this.#redis.mget(jobs.map(job => this.#keys.lock(job.lane, job.jobId)))
    return jobs.every((job, i) => tokens[i] === job.token)
  }

  async countAlone(jobId: string): Promise<number> {
    const key = this.#keys.alone(jobId)
    const [count] = await Promise.all([this.#redis.incr(key), this.#redis.expire(key, ALONE_LIFETIME_S)])
    return count
  }

  async forgetAlone(jobId: string): Promise<void> {
    await this.#redis.del(this.#keys.alone(jobId))
  }

  async nameBatch(
    batchId: string,
    jobs: readonly LockedJob[],
    formed?: Formation,
  ): Promise<Map<string, NamingConflict>> {
    const { batchOf, batches, open, payload, lock } = this.#keys
    const keys = [batchOf, batches, open, ...jobs.flatMap(job => [payload(job.jobId), lock(job.lane, job.jobId)])]
    const record = encodeRecord({ jobIds: jobs.map(job => job.jobId), storedTables: [], formed })
    const held = jobs.flatMap(job => [job.jobId, job.token])
    const pairs = (await this.#runConfirmed(NAME, keys, [batchId, record, ...held])) as string[]
    const conflicts = new Map<string, NamingConflict>()
    for (let i = 0; i < pairs.length; i += 2) conflicts.set(pairs[i] as string, pairs[i + 1] as NamingConflict)
    return conflicts
  }

  async describeBatch(batch: NamedBatch, formed: Formation): Promise<Formation | undefined> {
    const args = [batch.batchId, encodeRecord({ ...batch, formed })]
    const record = (await this.#runConfirmed(DESCRIBE_BATCH, [this.#keys.batches], args)) as string | null
    return record === null ? undefined : decodeRecord(record).formed
  }

  writeAhead(move: Move): Promise<Move> {
    return writeAhead(this.#queue.beside(move.queue), move)
  }

  finishBatch(batch: NamedBatch, done: DoneCounts, moves: readonly Move[] = []): Promise<Finished> {
    return this.#finish(batch.batchId, batch.jobIds, done, moves)
  }

  finishJob(jobId: string, done: DoneCounts, moves: readonly Move[] = []): Promise<Finished> {
    return this.#finish('', [jobId], done, moves)
  }

  async #finish(
    batchId: string,
    jobIds: readonly string[],
    { frames, bytes, shares }: DoneCounts,
    moves: readonly Move[],
  ): Promise<Finished> {
    for (const move of moves) {
      if (!arrivesInPieces(move)) continue
      await writeInPieces(this.#redis, this.#queue.beside(move.queue).keys.arriving(move.jobId), move.payload)
    }
    const { batchOf, batches, flow, shares: sharesKey, pending, busy, payload, joined } = this.#keys
    const payloads = jobIds.flatMap(jobId => [payload(jobId), joined(jobId)])
    const keys = [batchOf, batches, flow, sharesKey, pending, busy, ...payloads]
    const counts = [frames, bytes, ...shareArguments(shares)]
    const reply = await FINISH.run(
      this.#redis,
      [...keys, ...moves.flatMap(move => moveKeys(move, this.#queue.beside(move.queue)))],
      [batchId, jobIds.length, ...jobIds, ...counts, ...moves.flatMap(moveArguments)],
    )
    if (reply === 'gone') throw new TransientError('the pieces of a moved payload have expired')
    if (!Array.isArray(reply)) return { isFirst: false, leftOut: [] }
    return { isFirst: true, leftOut: moves.filter((_, index) => reply.includes(index)) }
  }

  async splitBatch(batchId: string, halves: readonly NamedBatch[]): Promise<boolean> {
    const { batchOf, batches } = this.#keys
    const args = halves.flatMap(half => [half.batchId, encodeRecord(half), half.jobIds.length, ...half.jobIds])
    return (await this.#runConfirmed(SPLIT_BATCH, [batchOf, batches], [batchId, ...args])) === 1
  }

  async splitJob(batch: NamedBatch, payloadBytes: number, parts: readonly JobPart[]): Promise<boolean> {
    const [jobId, ...others] = batch.jobIds
    if (jobId === undefined) throw new RangeError('splitJob needs a batch with a job')
    const { batchOf, batches, flow, pending, payload, joined } = this.#keys
    const growth = parts.reduce((sum, part) => sum + part.payload.length, -payloadBytes)
    const rest = others.length === 0 ? '' : encodeRecord({ ...batch, jobIds: others })
    const source = [payload(jobId), joined(jobId)]
    const keys = [batchOf, batches, flow, pending, ...source, ...parts.map(part => payload(part.jobId))]
    const args = parts.flatMap(part => {
      const record = encodeRecord({ jobIds: [part.jobId], storedTables: part.storedTables, unstored: part.unstored })
      return [part.jobId, part.batchId, record, part.payload]
    })
    return (await SPLIT_JOB.run(this.#redis, keys, [batch.batchId, rest, jobId, growth, ...args])) === 1
  }

  #runConfirmed(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.#confirmed?.run(script, keys, args) ?? script.run(this.#redis, keys, args)
  }
}

/** Reads a payload into a buffer of its own. */
async function readWhole(redis: Redis, keys: QueueKeys, jobId: string): Promise<Buffer | null> {
  const [, joined, first] = await Promise.all(closeAndRead(redis, keys, jobId))
  return first === null ? null : wholePayload([first, ...joined])
}

/** Reports whether a payload is too large for one command (`writeInPieces`). */
function arrivesInPieces({ payload }: NewPayload): boolean {
  return payload.length > PIECE_BYTES
}

function moveKeys({ jobId, arrivingKey }: Move, { keys }: RedisQueue): string[] {
  return [keys.payload(jobId), arrivingKey ?? keys.arriving(jobId), keys.pending, keys.flow, keys.shares]
}

const NOTHING = Buffer.alloc(0)

function moveArguments(move: Move): ScriptArgument[] {
  const { jobId, payload, frames, backlogLimitBytes = 0 } = move
  const bytes = arrivesInPieces(move) ? NOTHING : payload
  return [jobId, bytes, backlogLimitBytes, frames, sizeOf(move), ...shareArguments(move.shares)]
}

/** Returns the whole cost, the number of surfaces, then member and cost of each. */
function shareArguments(shares: Shares): ScriptArgument[] {
  let cost = 0
  for (const share of shares.values()) cost += share
  return [cost, shares.size, ...[...shares].flat()]
}
