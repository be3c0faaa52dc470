import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** The collaborators of `Admission`. `redis` is the Redis of the queues. */
export interface AdmissionDeps {
  readonly redis: Redis
  readonly queues: readonly AdmittedQueue[]
  readonly logger: Logger
  readonly now?: () => number
}

/** The bounds above which a queue refuses requests. */
export interface AdmissionOptions {
  /** The most accepted requests of one queue that are not stored yet. */
  readonly maxPayloads: number
  /** The most bytes of these requests, per queue. */
  readonly maxBytes: number
  /** The largest share of Redis' maxmemory that may be used. */
  readonly maxMemoryShare: number
  /** The time between two reads of the counters. */
  readonly pollMs: number
}

/** The requests of a queue that are accepted and not yet stored. */
export interface Backlog {
  readonly payloads: number
  readonly bytes: number
}

/** The backlog of a queue, and how fast the workers reduce it. */
interface Flow {
  payloads: number
  bytes: number
  donePayloads: number
  doneBytes: number
  /** Moving averages, per second. */
  payloadRate: number
  byteRate: number
  seenAt: number
}

/**
 * Decides whether the queues take more requests. Polls the counters of the queues, so that admitting a request costs no
 * round trip.
 */
export class Admission {
  readonly #redis: Redis
  readonly #queues: readonly AdmittedQueue[]
  readonly #logger: Logger
  readonly #now: () => number
  readonly #options: AdmissionOptions
  readonly #flows: Map<AdmittedQueue, Flow>
  readonly #timer: NodeJS.Timeout
  #memoryShare = 0
  #polling = false

  constructor({ redis, queues, logger, now = Date.now }: AdmissionDeps, options: AdmissionOptions) {
    this.#redis = redis
    this.#queues = queues
    this.#logger = logger
    this.#now = now
    this.#options = options
    this.#flows = new Map(queues.map(queue => [queue, emptyFlow()]))
    this.#timer = setInterval(() => void this.#poll(), options.pollMs)
    void this.#poll()
  }

  /**
   * Returns INGEST_BACKPRESSURE when the queue is over its depth or its bytes, or Redis is nearly full. Returns undefined
   * when the request may be accepted.
   */
  refuse(queue: AdmittedQueue): Problem | undefined {
    const { maxPayloads, maxBytes, maxMemoryShare } = this.#options
    const flow = this.#flowOf(queue)
    const isOverDepth = flow.payloads >= maxPayloads || flow.bytes >= maxBytes
    if (!isOverDepth && this.#memoryShare < maxMemoryShare) return undefined
    return {
      code: 'INGEST_BACKPRESSURE',
      message: isOverDepth
        ? `the ${queue} queue is over its depth; retry after the delay`
        : 'the store of the queues is nearly full; retry after the delay',
      retryAfterSeconds: retryAfterSeconds(flow),
    }
  }

  /** Adds a request that this process accepted to the backlog, until the next poll reads the counters again. */
  admitted(queue: AdmittedQueue, bytes: number): void {
    const flow = this.#flowOf(queue)
    flow.payloads++
    flow.bytes += bytes
  }

  /** Returns the backlog of a queue as of the last poll, with the requests that this process accepted since. */
  backlog(queue: AdmittedQueue): Backlog {
    const { payloads, bytes } = this.#flowOf(queue)
    return { payloads, bytes }
  }

  /** Stops polling. */
  stop(): void {
    clearInterval(this.#timer)
  }

  async #poll(): Promise<void> {
    if (this.#polling || this.#redis.status !== 'ready') return
    this.#polling = true
    try {
      const [memory, ...counters] = await Promise.all([
        this.#redis.info('memory'),
        ...this.#queues.map(queue => this.#redis.hgetall(queueKeys(queue).flow)),
      ])
      this.#memoryShare = usedShare(memory)
      for (const [i, queue] of this.#queues.entries()) follow(this.#flowOf(queue), counters[i] ?? {}, this.#now())
    } catch (error) {
      this.#logger.debug(errorFields(error), 'the counters of the queues could not be read')
    } finally {
      this.#polling = false
    }
  }

  #flowOf(queue: AdmittedQueue): Flow {
    const flow = this.#flows.get(queue)
    if (flow === undefined) throw new RangeError(`queue ${queue} is not followed`)
    return flow
  }
}

/** Updates a flow from the counters of its queue. */
function follow(flow: Flow, counters: Readonly<Record<string, string>>, now: number): void {
  const donePayloads = Number(counters.donePayloads ?? 0)
  const doneBytes = Number(counters.doneBytes ?? 0)
  const seconds = Math.max(0.001, (now - flow.seenAt) / 1_000)
  if (flow.seenAt > 0) {
    flow.payloadRate = average(flow.payloadRate, Math.max(0, donePayloads - flow.donePayloads) / seconds, seconds)
    flow.byteRate = average(flow.byteRate, Math.max(0, doneBytes - flow.doneBytes) / seconds, seconds)
  }
  flow.payloads = Number(counters.acceptedPayloads ?? 0) - donePayloads
  flow.bytes = Number(counters.acceptedBytes ?? 0) - doneBytes
  flow.donePayloads = donePayloads
  flow.doneBytes = doneBytes
  flow.seenAt = now
}

/**
 * Returns the backlog divided by the measured drain rate, by payloads or by bytes, whichever takes longer. The result is
 * between 1 and 60 (docs/contract.md#backpressure).
 */
function retryAfterSeconds(flow: Flow): number {
  const seconds = Math.max(
    flow.payloads > 0 ? flow.payloads / flow.payloadRate : 0,
    flow.bytes > 0 ? flow.bytes / flow.byteRate : 0,
  )
  return Math.min(60, Math.max(1, Math.ceil(seconds)))
}

/** Returns a moving average in which the last five seconds have half of the weight. */
function average(old: number, value: number, seconds: number): number {
  const keep = 0.5 ** (seconds / 5)
  return old * keep + value * (1 - keep)
}

/** Returns the used share of Redis' maxmemory, or 0 if it has no limit. `info` is the reply of INFO memory. */
function usedShare(info: string): number {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0)
  const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0)
  return limit === 0 ? 0 : used / limit
}

function emptyFlow(): Flow {
  return { payloads: 0, bytes: 0, donePayloads: 0, doneBytes: 0, payloadRate: 0, byteRate: 0, seenAt: 0 }
}
