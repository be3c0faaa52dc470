import type { Redis } from 'ioredis'
import { PIECE_BYTES, writeInPieces } from '../../shared/queue/large-values.ts'
import { PAYLOAD_HEADER_BYTES } from '../../shared/queue/payload-frame.ts'
import type { Lane, QueueKeys } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Script } from '../../shared/runtime/redis/script.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import { acceptArguments, acceptKeys, type SurfaceRequests, UNACCEPTED_LIFETIME_MS } from './accept-script.ts'
import { createJobWriter, type JobWriter, type NewJob } from './job-writer.ts'
import type { ReplicaWait, Transaction } from './redis-transaction.ts'
import { respCommandBefore, respEval, respEvalSha, respScript } from './resp.ts'

/** The collaborators of a payload writer. `redis` is a producer's connection (`connectProducer`). */
export interface PayloadWriterDeps {
  readonly redis: Redis
  readonly queue: RedisQueue
  readonly lane: Lane
  /** The clock of this Redis. */
  readonly clock: RedisClock
  readonly logger: Logger
  /** The number of replicas that must have a commit before it is confirmed. */
  readonly minReplicas: number
}

/** A payload to commit. */
interface CommitContent {
  /** The bytes of the payload, packed or not, or undefined if they arrived in pieces under the key `arriving`. */
  readonly payload: Buffer | undefined
  /** Size of the payload before it was packed. */
  readonly bytes: number
  readonly frames: number
  /** Unix time of the arrival of the first request. */
  readonly arrivedAtMs: number
  /** Cost and requests of each surface, by its member of `shares`. */
  readonly surfaces: ReadonlyMap<string, SurfaceRequests>
  /** Priority in the bulk lane, 0 in the express lane. */
  readonly priority: number
}

/** A payload that is sent in one piece. */
export interface SmallCommit extends CommitContent {
  readonly payload: Buffer
}

/** A script that decides whether a request is accepted (decide.lua), with its own keys and arguments. */
export interface Condition {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

/** The outcome of a commit that Redis has confirmed. */
export interface CommitOutcome {
  /** False if the condition refused the payload. */
  readonly accepted: boolean
  /** The result of the condition. */
  readonly result: unknown
}

/** The outcome of a commit without a condition. */
export const ACCEPTED: CommitOutcome = { accepted: true, result: undefined }

/** The error of a commit that was confirmed by a server which could lose it, or of which nothing is known yet. */
export const NOT_KNOWN_DURABLE = 'redis has confirmed the write and could lose it'

/** Time for each piece of a payload beyond that of the commit. A piece takes about 10 ms on a quiet machine. */
const PIECE_MS = 250

/** Part of the time of a commit that is left for fsync and reply, if Redis runs the commit just before the deadline. */
const CONFIRMATION_PART = 1 / 8

/** Part of the time of a commit that replicas have to confirm it. */
const REPLICATION_PART = 3 / 4

const ACCEPT = queueScript('accept')
const EVAL_ACCEPT = respEval(ACCEPT.text)
const EVALSHA_ACCEPT = respEvalSha(ACCEPT.sha1)
/** With its text each time, because nothing else would remove the frames if Redis had lost the script. */
const EVAL_JOIN = respEval(queueScript('join').text)

/** The reply of a script. */
type ScriptReply = readonly [timeMs: number, outcome: number, result?: unknown]

/**
 * Writes payloads to one lane of a queue: payload and acceptance, and the job if it is not added later, in one transaction.
 * Redis refuses a commit that it runs after the deadline, so that a request which was answered 503 is not stored afterwards.
 */
export class PayloadWriter {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #clock: RedisClock
  readonly #writer: JobWriter
  readonly #minReplicas: number
  /** The socket on which the text of `ACCEPT` was sent. Its server knows the script by its hash then. */
  #knownOn: unknown

  constructor(deps: PayloadWriterDeps) {
    this.#redis = deps.redis
    this.#keys = deps.queue.keys
    this.#clock = deps.clock
    this.#writer = createJobWriter(deps)
    this.#minReplicas = deps.minReplicas
  }

  /** False while Redis is unavailable: a write would fail. */
  get isUsable(): boolean {
    return this.#writer.isUsable && this.#clock.isKnown
  }

  /** Waits until Redis is available. Throws a TransientError if it is not within this time. */
  async untilUsable(withinMs: number): Promise<void> {
    try {
      await withDeadline(this.#writer.whenUsable(), withinMs, 'redis was not connected again in time')
    } catch (cause) {
      throw new TransientError('redis is not connected', { cause })
    }
  }

  /**
   * Sends a commit with its job before it returns. Resolves when Redis and the replicas have it on disk, or its condition has
   * refused it. Rejects with a TransientError when they did not confirm within `timeoutMs`. The payload is then stored only if
   * Redis ran the commit in time and a confirmation was lost.
   */
  async write(jobId: string, content: CommitContent, timeoutMs: number, condition?: Condition): Promise<CommitOutcome> {
    const { frames, bytes, priority } = content
    const keys = this.#acceptKeys(jobId, content)
    const args = this.#arguments(jobId, content, bytes, timeoutMs)
    const script = condition
      ? respScript(respEval(condition.script.text), [...keys, ...condition.keys], [...args, ...condition.args])
      : respScript(this.#acceptScript(), keys, args)
    const job = { jobId, data: { payloads: frames, bytes }, priority }
    const [, outcome, result] = await this.#send(this.#withPayload(jobId, content, script), timeoutMs, job)
    return { accepted: outcome === 1, result: asText(result) }
  }

  /**
   * Sends a commit like `write`, with this job or with none. Other requests may join its payload until a worker reads it.
   */
  async create(jobId: string, content: CommitContent, timeoutMs: number, job?: NewJob): Promise<void> {
    const keys = [...this.#acceptKeys(jobId, content), this.#keys.open]
    const args = this.#arguments(jobId, content, content.bytes, timeoutMs)
    const script = respScript(this.#acceptScript(), keys, args)
    await this.#send(this.#withPayload(jobId, content, script), timeoutMs, job)
  }

  /**
   * Adds the requests of a commit to the payload of another job. Returns false if a worker has read that payload; nothing was
   * changed then. Rejects as `write` does.
   */
  async join(jobId: string, content: SmallCommit, timeoutMs: number): Promise<boolean> {
    const { flow, shares, open, busy, arrivals } = this.#keys
    const joined = this.#keys.joined(jobId)
    const value = content.payload.subarray(PAYLOAD_HEADER_BYTES)
    const args = this.#arguments(jobId, content, content.bytes - PAYLOAD_HEADER_BYTES, timeoutMs)
    const script = respScript(EVAL_JOIN, [joined, flow, shares, open, busy, arrivals], args)
    const head = respCommandBefore(value.length, 'RPUSH', joined)
    const [, outcome] = await this.#send({ commands: 2, head, value, tail: `\r\n${script}` }, timeoutMs)
    return outcome === 1
  }

  /**
   * Writes a payload under the key `arriving`, piece by piece. Rejects with a TransientError when Redis did not take all pieces
   * in time. Each has the timeout of the connection's commands too.
   */
  async writePieces(jobId: string, payload: Buffer, timeoutMs: number): Promise<void> {
    const withinMs = timeoutMs + (payload.length / PIECE_BYTES) * PIECE_MS
    const pieces = writeInPieces(this.#redis, this.#keys.arriving(jobId), payload)
    try {
      await withDeadline(pieces, withinMs, 'redis did not take the pieces in time')
    } catch (cause) {
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }

  /** Adds the job of a payload that was created. */
  addJob(job: NewJob): Promise<void> {
    return this.#writer.add(job)
  }

  #acceptKeys(jobId: string, { payload }: CommitContent): string[] {
    const key = this.#keys.payload(jobId)
    return acceptKeys(this.#keys, key, payload === undefined ? this.#keys.arriving(jobId) : key)
  }

  #arguments(jobId: string, content: CommitContent, bytes: number, timeoutMs: number): (string | number)[] {
    const { arrivedAtMs, frames, surfaces } = content
    const deadlineMs = this.#clock.now() + timeoutMs * (1 - CONFIRMATION_PART)
    return acceptArguments({ deadlineMs, jobId, arrivedAtMs, frames, bytes, surfaces })
  }

  /** Returns the beginning of the command that accepts a payload: with the text of the script once on each connection. */
  #acceptScript(): string {
    const { stream } = this.#redis
    const isKnown = this.#knownOn === stream
    this.#knownOn = stream
    return isKnown ? EVALSHA_ACCEPT : EVAL_ACCEPT
  }

  /** Returns the transaction that writes the bytes of a payload, unless they have arrived in pieces, and runs a script. */
  #withPayload(jobId: string, { payload }: CommitContent, script: string): Transaction {
    if (payload === undefined) return { commands: 1, head: '', tail: script }
    const head = respCommandBefore(payload.length, 'PSETEX', this.#keys.payload(jobId), UNACCEPTED_LIFETIME_MS)
    return { commands: 2, head, value: payload, tail: `\r\n${script}` }
  }

  #replicaWait(timeoutMs: number): ReplicaWait | undefined {
    if (this.#minReplicas === 0) return undefined
    return { replicas: this.#minReplicas, timeoutMs: Math.ceil(timeoutMs * REPLICATION_PART) }
  }

  /** Sends a commit, whose script comes last, before it returns. Resolves with what the script returned. */
  async #send(transaction: Transaction, timeoutMs: number, job?: NewJob): Promise<ScriptReply> {
    try {
      const wait = this.#replicaWait(timeoutMs)
      const reply = (await this.#writer.write(transaction, timeoutMs, job, wait)) as ScriptReply
      this.#clock.observe(reply[0])
      if (reply[1] === 0) throw new LateCommitError('redis refused the commit: it came after its deadline')
      return reply
    } catch (cause) {
      if (!(cause instanceof LateCommitError)) {
        this.#writer.reconnect()
        this.#knownOn = undefined
      }
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }
}

/** A commit that Redis refused for its time. The connection is in order. */
class LateCommitError extends Error {
  override readonly name = 'LateCommitError'
}

/** Returns the reply of a script with its strings as text. */
function asText(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString()
  return Array.isArray(reply) ? reply.map(asText) : reply
}
