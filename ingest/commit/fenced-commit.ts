import type { Redis } from 'ioredis'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { type Lane, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import {
  ACCEPT_KEYS,
  ACCEPT_UNCONDITIONALLY,
  acceptArguments,
  acceptKeys,
  acceptOnCondition,
  UNACCEPTED_LIFETIME_MS,
} from './accept-script.ts'
import { createJobWriter, type JobWriter } from './job-writer.ts'
import { setInPlace } from './redis-transaction.ts'

/** The collaborators of a fenced commit. `redis` is a producer's connection (`connectProducer`). */
export interface FencedCommitDeps {
  readonly redis: Redis
  readonly queue: AdmittedQueue
  readonly lane: Lane
  /** The clock of this Redis. */
  readonly clock: RedisClock
  readonly logger: Logger
}

/** A payload to commit. */
export interface CommitContent {
  readonly jobId: string
  /** The bytes of the payload, or undefined if they arrived in pieces under the key `arriving`. */
  readonly payload: Buffer | undefined
  readonly bytes: number
  readonly frames: number
  /** Unix time of the arrival of the first request. */
  readonly arrivedAtMs: number
  /** Cost by member of `shares`. */
  readonly costs: ReadonlyMap<string, number>
  /** Priority in the bulk lane, 0 in the express lane. */
  readonly priority: number
}

/**
 * Lua that decides whether a request is accepted, with its own keys and arguments (`acceptOnCondition`).
 */
export interface Condition {
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

/** The outcome of a commit. */
export interface CommitOutcome {
  /** False if the condition refused the payload. */
  readonly accepted: boolean
  /** The result of the condition. */
  readonly result: unknown
}

/** Part of the time of a commit that is left for fsync and reply, if Redis runs the commit just before the deadline. */
const CONFIRMATION_PART = 1 / 8

type AcceptCommand = (...args: (string | number)[]) => Promise<unknown>

/**
 * Writes payloads to one lane of a queue: payload, acceptance and job in one transaction. Redis refuses a commit that it
 * runs after the deadline, so that a request which was answered 503 is not stored afterwards.
 */
export class FencedCommit {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #clock: RedisClock
  readonly #writer: JobWriter

  constructor(deps: FencedCommitDeps) {
    this.#redis = deps.redis
    this.#keys = queueKeys(deps.queue)
    this.#clock = deps.clock
    this.#writer = createJobWriter(deps)
    deps.redis.defineCommand('penstockAccept', { numberOfKeys: ACCEPT_KEYS, lua: ACCEPT_UNCONDITIONALLY })
  }

  /** False while Redis is unavailable: a write would fail. */
  get isUsable(): boolean {
    return this.#writer.isUsable && this.#clock.isKnown
  }

  /** Resolves when Redis is available. */
  whenUsable(): Promise<void> {
    return this.#writer.whenUsable()
  }

  /**
   * Sends a commit before it returns. Resolves when Redis has it on disk, or its condition has refused it. Rejects with a
   * TransientError when Redis did not confirm within `timeoutMs`. The payload is then stored only if Redis ran the commit
   * in time and the confirmation was lost.
   */
  async write(content: CommitContent, timeoutMs: number, condition?: Condition): Promise<CommitOutcome> {
    try {
      const replies = this.#send(content, timeoutMs, condition)
      const reply = (await withDeadline(replies, timeoutMs, 'redis did not confirm in time')).at(-1)
      return this.#outcomeOf(reply as [number, number, unknown?])
    } catch (cause) {
      if (!(cause instanceof LateCommitError)) this.#writer.reconnect()
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }

  #send(content: CommitContent, timeoutMs: number, condition: Condition | undefined): Promise<unknown[]> {
    const { jobId, payload, frames, bytes, priority } = content
    const deadlineMs = this.#clock.now() + timeoutMs * (1 - CONFIRMATION_PART)
    const source = payload === undefined ? this.#keys.arriving(jobId) : undefined
    const { flow, shares, pending } = this.#keys
    const payloadKey = this.#keys.payload(jobId)
    const keys = acceptKeys({ payload: payloadKey, flow, shares, pending, ...(source !== undefined && { source }) })
    const args = acceptArguments({ ...content, deadlineMs })
    const accept = () => (condition === undefined ? this.#accept(keys, args) : this.#decide(keys, args, condition))
    return this.#writer.write({ jobId, data: { payloads: frames, bytes }, priority }, () =>
      payload === undefined
        ? [accept()]
        : [setInPlace(this.#redis, payloadKey, payload, UNACCEPTED_LIFETIME_MS), accept()],
    )
  }

  #accept(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const { penstockAccept } = this.#redis as unknown as { penstockAccept: AcceptCommand }
    return penstockAccept.call(this.#redis, ...keys, ...args)
  }

  #decide(keys: readonly string[], args: readonly (string | number)[], condition: Condition): Promise<unknown> {
    const names = [...keys, ...condition.keys]
    return this.#redis.eval(acceptOnCondition(condition.lua), names.length, ...names, ...args, ...condition.args)
  }

  #outcomeOf([timeMs, outcome, result]: [number, number, unknown?]): CommitOutcome {
    this.#clock.observe(timeMs)
    if (outcome === 0) throw new LateCommitError('redis refused the commit: it came after its deadline')
    return { accepted: outcome === 1, result }
  }
}

/** A commit that Redis refused for its time. The connection is in order. */
class LateCommitError extends Error {
  override readonly name = 'LateCommitError'
}
