import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import type { CommitOutcome, RequestCounter } from '../../shared/http/route.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import {
  countField,
  OTHER_SURFACES,
  OVER_QUOTA,
  type RequestOutcome,
  refusedWith,
} from '../../shared/queue/request-counts.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

const FLUSH_MS = 1_000
/** Surfaces and hours of a queue between two flushes. Requests of further ones are counted together. */
const MAX_TALLIES = 20_000
/** Surfaces whose counts are sent in one transaction. */
const SURFACES_PER_WRITE = 100

/** Requests of one surface that arrived in one hour. Outcomes of which most surfaces have none are undefined. */
interface Tally {
  readonly member: string
  readonly hour: number
  /** The tally of the surface for another hour, which this one follows. */
  readonly before: Tally | undefined
  received: number
  acknowledged: number
  unconfirmed: number
  done: number
  overQuota: number
  /** Refused requests by status. Statuses come from this program, so that they are few. */
  refused: Map<number, number> | undefined
}

/** Counts the requests of one queue by surface, hour of arrival and outcome. */
export class RequestTally implements RequestCounter {
  readonly #now: () => number
  readonly #maxTallies: number
  #tallies = new Map<string, Tally>()
  #size = 0

  constructor(now: () => number, maxTallies = MAX_TALLIES) {
    this.#now = now
    this.#maxTallies = maxTallies
  }

  /** Counts a request. Allocates nothing but once a second for each surface, and for each status of a refusal. */
  ended(owner: string, end: CommitOutcome | number, arrivedAtMs = this.#now()): void {
    const tally = this.#tallyOf(owner, Math.floor(arrivedAtMs / HOUR_MS))
    tally.received++
    if (typeof end === 'string') tally[end]++
    else if (end < 400) tally.done++
    else {
      tally.refused ??= new Map()
      tally.refused.set(end, (tally.refused.get(end) ?? 0) + 1)
    }
  }

  overQuota(owner: string): void {
    this.#tallyOf(owner, Math.floor(this.#now() / HOUR_MS)).overQuota++
  }

  #tallyOf(member: string, hour: number): Tally {
    const newest = this.#tallies.get(member)
    for (let tally = newest; tally !== undefined; tally = tally.before) {
      if (tally.hour === hour) return tally
    }
    if (this.#size >= this.#maxTallies && member !== OTHER_SURFACES) return this.#tallyOf(OTHER_SURFACES, hour)
    const counts = { received: 0, acknowledged: 0, unconfirmed: 0, done: 0, overQuota: 0, refused: undefined }
    const tally: Tally = { member, hour, before: newest, ...counts }
    this.#tallies.set(member, tally)
    this.#size++
    return tally
  }

  /** Returns what was counted since the last call. */
  take(): readonly Tally[] {
    const taken: Tally[] = []
    for (const newest of this.#tallies.values()) {
      for (let tally: Tally | undefined = newest; tally !== undefined; tally = tally.before) taken.push(tally)
    }
    this.#tallies = new Map()
    this.#size = 0
    return taken
  }
}

/**
 * The tallies of all queues of a process, which are added to Redis every second. The outcomes of a surface are sent in one
 * transaction, so that their sum is always the number of received requests. An edge that is killed loses its last second.
 * Counts that were sent are not sent again, so that a lost reply can only make these numbers too small: an audit compares the
 * acknowledged requests with those that Redis has accepted.
 */
export class RequestTallies {
  readonly #queues: Pick<Queues, 'firstOf'>
  readonly #logger: Logger
  readonly #now: () => number
  readonly #tallies = new Map<AdmittedQueue, RequestTally>()
  readonly #timer: NodeJS.Timeout

  constructor(queues: Pick<Queues, 'firstOf'>, logger: Logger, now: () => number = Date.now) {
    this.#queues = queues
    this.#logger = logger
    this.#now = now
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Returns the tally of a queue. */
  of(queue: AdmittedQueue): RequestTally {
    const known = this.#tallies.get(queue)
    if (known !== undefined) return known
    const tally = new RequestTally(this.#now)
    this.#tallies.set(queue, tally)
    return tally
  }

  /** Adds what was counted to Redis. While Redis is unavailable, it is kept. */
  async flush(): Promise<void> {
    const sent: Promise<unknown>[] = []
    for (const [queue, tallies] of this.#tallies) {
      const { redis, keys } = this.#queues.firstOf(queue)
      if (redis.status !== 'ready') continue
      const taken = tallies.take()
      for (let i = 0; i < taken.length; i += SURFACES_PER_WRITE) {
        const write = redis.multi()
        for (const tally of taken.slice(i, i + SURFACES_PER_WRITE)) {
          for (const [outcome, requests] of countsOf(tally)) {
            if (requests > 0) write.hincrby(keys.arrivals, countField(tally.hour, tally.member, outcome), requests)
          }
        }
        sent.push(write.exec())
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

function* countsOf(tally: Tally): Generator<[RequestOutcome, number]> {
  for (const outcome of ['received', 'acknowledged', 'unconfirmed', 'done'] as const) yield [outcome, tally[outcome]]
  yield [OVER_QUOTA, tally.overQuota]
  for (const [status, requests] of tally.refused ?? []) yield [refusedWith(status), requests]
}
