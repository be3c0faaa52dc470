import type { Redis } from 'ioredis'
import { DAY_MS, DAY_S } from '../../schemas/units.ts'
import { DIRECTORY_ROOT } from '../../shared/directory/record.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** The bytes of a key that all edges together have accepted since midnight UTC. */
export interface DailyBytes {
  /** Returns the bytes of today, as far as they are known here: those of other edges at most SYNC_MS later. */
  used(nowMs: number): number
  /** Adds bytes that this edge has accepted. */
  add(bytes: number): void
}

/** The collaborators of `DailyUsage`. */
interface DailyUsageDeps {
  /** The Redis of the directory. */
  readonly redis: Redis
  readonly logger: Logger
  readonly now?: () => number
}

/** How often edges exchange what they have counted. */
const SYNC_MS = 500
/** The lifetime of a counter in Redis. */
const LIFETIME_S = 2 * DAY_S
/** A counter that no request has used for this long is removed. */
const IDLE_MS = 60_000
/** The most counters of a process. */
const MAX_COUNTERS = 100_000
/** Counters that are sent together. */
const COUNTERS_AT_ONCE = 500

interface Counter {
  /** The day of the counts, in days since the epoch. */
  day: number
  /** The sum of all edges when it was last read. */
  known: number
  /** Bytes that were accepted here since then. */
  pending: number
  usedAtMs: number
}

/**
 * Shares the daily counts of keys among the edges. Each edge adds what it has accepted to a counter in Redis twice a second
 * and reads the sum, so that a request costs no round trip. Keys without a daily quota have no counter.
 */
export class DailyUsage {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #now: () => number
  readonly #counters = new Map<string, Counter>()
  readonly #timer: NodeJS.Timeout
  #isSyncing = false

  constructor({ redis, logger, now = Date.now }: DailyUsageDeps, syncMs = SYNC_MS) {
    this.#redis = redis
    this.#logger = logger
    this.#now = now
    this.#timer = setInterval(() => void this.sync(), syncMs).unref()
  }

  /** Returns the counter of a key. */
  of(keyId: string): DailyBytes {
    return {
      used: nowMs => {
        const counter = this.#counterOf(keyId, nowMs)
        return counter.known + counter.pending
      },
      add: bytes => {
        this.#counterOf(keyId, this.#now()).pending += bytes
      },
    }
  }

  /** Exchanges the counts with the other edges. If Redis is unavailable, the counts stay for the next time. */
  async sync(): Promise<void> {
    if (this.#isSyncing || this.#counters.size === 0 || this.#redis.status !== 'ready') return
    this.#isSyncing = true
    try {
      const entries = [...this.#counters]
      for (let at = 0; at < entries.length; at += COUNTERS_AT_ONCE) {
        await this.#exchange(entries.slice(at, at + COUNTERS_AT_ONCE))
      }
    } catch (error) {
      this.#logger.warn(errorFields(error), 'the daily counts of keys could not be exchanged')
    } finally {
      this.#isSyncing = false
    }
  }

  /** Stops the exchange, after a last one. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.sync()
  }

  #counterOf(keyId: string, nowMs: number): Counter {
    const day = Math.floor(nowMs / DAY_MS)
    let counter = this.#counters.get(keyId)
    if (counter === undefined) {
      counter = { day, known: 0, pending: 0, usedAtMs: nowMs }
      setBounded(this.#counters, MAX_COUNTERS, keyId, counter)
      // The sum of the other edges is needed soon.
      if (!this.#isSyncing) setImmediate(() => void this.sync())
    } else if (counter.day !== day) {
      counter.day = day
      counter.known = 0
    }
    counter.usedAtMs = nowMs
    return counter
  }

  async #exchange(entries: readonly (readonly [string, Counter])[]): Promise<void> {
    const pipeline = this.#redis.pipeline()
    const sent = entries.map(([keyId, { day, pending }]) => {
      const key = `${DIRECTORY_ROOT}:quota:${day}:${keyId}`
      pipeline.incrby(key, pending).expire(key, LIFETIME_S)
      return { day, pending }
    })
    const replies = await pipeline.exec()
    let failure: Error | undefined
    for (const [i, [keyId, counter]] of entries.entries()) {
      const [error, sum] = replies?.[2 * i] ?? []
      const { day, pending } = sent[i] ?? { day: 0, pending: 0 }
      if (typeof sum !== 'number') {
        // Bytes whose addition was not confirmed are added again: a count may be too high, never too low.
        failure = error ?? new Error('the counts were not confirmed')
        continue
      }
      counter.pending -= pending
      if (counter.day === day) counter.known = sum
      if (counter.pending === 0 && this.#now() - counter.usedAtMs > IDLE_MS) this.#counters.delete(keyId)
    }
    if (failure) throw failure
  }
}
