import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { RedisMemory } from '../../shared/runtime/redis-memory.ts'
import { type QueueCounters, QueueShares, type RefusalReason } from './queue-shares.ts'
import type { RedisClock } from './redis-clock.ts'
import { costRules, decodedLimit, type QueueLimits } from './request-cost.ts'

/** The collaborators of `Admission`. `redis` is the Redis of the queues. */
export interface AdmissionDeps {
  readonly redis: Redis
  readonly queues: readonly AdmittedQueue[]
  readonly logger: Logger
  /** The clock that every poll corrects. */
  readonly clock: RedisClock
  /** Called for each refused request. */
  readonly onRefused?: (queue: AdmittedQueue, reason: RefusalReason) => void
  readonly now?: () => number
  readonly random?: () => number
}

/** The bounds above which requests are refused. */
export interface AdmissionOptions {
  /** The limits of each queue. */
  readonly limits: QueueLimits
  /** The largest share of Redis' maxmemory that may be used. */
  readonly maxMemoryShare: number
  /** The time between two reads of the counters. */
  readonly pollMs: number
}

/** Cost of the dead letters that wait for the object store. A surface may have half of it. */
const MAX_DEAD_LETTER_COST = 256 * 1024 * 1024

/** Prices change slowly, so only every fourth poll reads them. */
const POLLS_PER_PRICES = 4
const LISTED_PRICES = 1_000

/** The least delay while the memory of Redis is used up. Up to half more is added at random. */
const MEMORY_RETRY_S = 10

/**
 * Follows the shares of the surfaces in all queues. Polls their counters in Redis, so that deciding on a request costs no
 * round trip.
 */
export class Admission {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #clock: RedisClock
  readonly #memory: RedisMemory
  readonly #options: AdmissionOptions
  readonly #random: () => number
  readonly #queues: ReadonlyMap<AdmittedQueue, QueueShares>
  /** All that is polled: the queues, and the dead letters. */
  readonly #polled: readonly { readonly keys: ReturnType<typeof queueKeys>; readonly shares: QueueShares }[]
  readonly #timer: NodeJS.Timeout
  #memoryShare = 0
  #polls = 0
  #polling = false

  constructor(deps: AdmissionDeps, options: AdmissionOptions) {
    const { queues, now = Date.now, random = Math.random, onRefused = () => {} } = deps
    this.#redis = deps.redis
    this.#logger = deps.logger
    this.#clock = deps.clock
    this.#memory = new RedisMemory(deps.logger, 'queues')
    this.#options = options
    this.#random = random
    const deadLetters = new QueueShares({
      queue: 'dead-letters',
      rules: costRules({ ...options.limits, maxCost: MAX_DEAD_LETTER_COST }),
      decodedLimit: 0,
      now,
      random,
      onRefused: () => {},
    })
    const rules = costRules(options.limits)
    const sharesOf = (queue: AdmittedQueue) =>
      new QueueShares({
        queue,
        rules,
        decodedLimit: decodedLimit(queue),
        now,
        random,
        onRefused: reason => onRefused(queue, reason),
        deadLetters,
      })
    this.#queues = new Map(queues.map(queue => [queue, sharesOf(queue)]))
    this.#polled = [
      ...[...this.#queues].map(([queue, shares]) => ({ keys: queueKeys(queue), shares })),
      { keys: queueKeys('dead-letters'), shares: deadLetters },
    ]
    this.#timer = setInterval(() => void this.#poll(), options.pollMs)
    this.#redis.on('ready', () => void this.#poll())
    this.#redis.on('close', () => this.#clock.reset())
    void this.#poll()
  }

  /** Returns the shares of a queue. */
  sharesOf(queue: AdmittedQueue): QueueShares {
    const shares = this.#queues.get(queue)
    if (shares === undefined) throw new RangeError(`queue ${queue} is not followed`)
    return shares
  }

  /** Returns INGEST_BACKPRESSURE when Redis is nearly full, or undefined. For requests that write to Redis without a queue. */
  refuseForMemory(): Problem | undefined {
    if (this.#memoryShare < this.#options.maxMemoryShare) return undefined
    const message = 'the store of the queues is nearly full; retry after the delay'
    return {
      code: 'INGEST_BACKPRESSURE',
      message,
      retryAfterSeconds: Math.ceil(MEMORY_RETRY_S * (1 + this.#random() / 2)),
    }
  }

  /** Stops polling. */
  stop(): void {
    clearInterval(this.#timer)
  }

  async #poll(): Promise<void> {
    if (this.#polling || this.#redis.status !== 'ready') return
    this.#polling = true
    try {
      await this.#read(this.#polls++ % POLLS_PER_PRICES === 0)
    } catch (error) {
      this.#logger.debug(errorFields(error), 'the counters of the queues could not be read')
    } finally {
      this.#polling = false
    }
  }

  async #read(withPrices: boolean): Promise<void> {
    const redis = this.#redis
    for (const { shares } of this.#polled) shares.beginPoll()
    const [time, memory, ...counters] = await Promise.all([
      redis.time(),
      redis.info('memory'),
      ...this.#polled.map(({ keys, shares }) => readCounters(redis, keys, shares.listedSurfaces, withPrices)),
    ])
    this.#clock.observe(Number(time[0]) * 1_000 + Number(time[1]) / 1_000)
    this.#memoryShare = this.#memory.usedShare(memory)
    const memoryFree = 1 - this.#memoryShare / this.#options.maxMemoryShare
    for (const [i, { shares }] of this.#polled.entries()) shares.endPoll(counters[i] as QueueCounters, memoryFree)
  }
}

async function readCounters(
  redis: Redis,
  keys: ReturnType<typeof queueKeys>,
  listedSurfaces: number,
  withPrices: boolean,
): Promise<QueueCounters> {
  const [flow, shares, prices] = await Promise.all([
    redis.hgetall(keys.flow),
    redis.zrevrange(keys.shares, 0, listedSurfaces - 1, 'WITHSCORES'),
    withPrices ? redis.zrevrange(keys.prices, 0, LISTED_PRICES - 1, 'WITHSCORES') : undefined,
  ])
  return { flow, shares, prices }
}
