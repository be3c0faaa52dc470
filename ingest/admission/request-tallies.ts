import type { Redis } from 'ioredis'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { countField, type RequestOutcome } from '../../shared/queue/request-counts.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Outcomes that the edge counts. Redis counts the accepted requests itself. */
const OUTCOMES = ['acknowledged', 'refused', 'unconfirmed'] as const satisfies readonly RequestOutcome[]
type Outcome = (typeof OUTCOMES)[number]

const HOUR_MS = 3_600_000
const FLUSH_MS = 1_000
/** Surfaces of a queue between two flushes. Requests of further ones are not counted. */
const MAX_SURFACES = 20_000

interface Tally extends Record<Outcome, number> {
  readonly member: string
  readonly hour: number
}

/** Counts the requests of one queue by surface and hour of arrival. */
export class RequestTally {
  #current = new Map<string, Tally>()
  /** Tallies of an hour that has ended since the last flush. */
  #ended: Tally[] = []

  /** Counts a request. `member` is that of its surface in `shares`. Allocates nothing but once a second for each surface. */
  count(member: string, outcome: Outcome, arrivedAtMs: number): void {
    const hour = Math.floor(arrivedAtMs / HOUR_MS)
    let tally = this.#current.get(member)
    if (tally?.hour !== hour) {
      if (this.#ended.length + this.#current.size >= MAX_SURFACES) return
      if (tally !== undefined) this.#ended.push(tally)
      tally = { member, hour, acknowledged: 0, refused: 0, unconfirmed: 0 }
      this.#current.set(member, tally)
    }
    tally[outcome]++
  }

  /** Returns what was counted since the last call. */
  take(): readonly Tally[] {
    const taken = [...this.#ended, ...this.#current.values()]
    this.#current = new Map()
    this.#ended = []
    return taken
  }
}

/**
 * The tallies of all queues of a process, which are added to Redis every second. An edge that is killed loses its last second.
 * Counts that were sent are not sent again, so that a lost reply can only make these numbers too small: an audit compares the
 * acknowledged requests with those that Redis has accepted.
 */
export class RequestTallies {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #tallies = new Map<AdmittedQueue, RequestTally>()
  readonly #timer: NodeJS.Timeout

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis
    this.#logger = logger
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Returns the tally of a queue. */
  of(queue: AdmittedQueue): RequestTally {
    const known = this.#tallies.get(queue)
    if (known !== undefined) return known
    const tally = new RequestTally()
    this.#tallies.set(queue, tally)
    return tally
  }

  /** Adds what was counted to Redis. While Redis is unavailable, it is kept. */
  async flush(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const sent: Promise<unknown>[] = []
    for (const [queue, tally] of this.#tallies) {
      const key = queueKeys(queue).arrivals
      for (const { member, hour, ...counts } of tally.take()) {
        for (const outcome of OUTCOMES) {
          if (counts[outcome] > 0)
            sent.push(this.#redis.hincrby(key, countField(hour, member, outcome), counts[outcome]))
        }
      }
    }
    try {
      await Promise.all(sent)
    } catch (error) {
      this.#logger.debug(errorFields(error), 'some counts of requests are lost')
    }
  }

  /** Adds the last counts to Redis. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
