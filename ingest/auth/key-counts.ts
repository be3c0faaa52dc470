import type { Redis } from 'ioredis'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { addKeyUsage, type KeyCount } from '../../shared/queue/key-usage.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

const FLUSH_MS = 5_000
/** Number of flushes in a row after which a count that stays zero is removed. Cached keys are looked up again before. */
const IDLE_FLUSHES = 12
/** The most keys that a process counts. */
const MAX_KEYS = 50_000
/** Counts that are sent together. */
const COUNTS_AT_ONCE = 500

interface Counted {
  readonly count: KeyCount
  idleFlushes: number
}

/**
 * Counts the requests of public keys. A cached key has its count, so that a request costs two additions. They are added to Redis
 * every five seconds: an edge that is killed loses those, and a lost reply makes the numbers too small.
 */
export class KeyCounts {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #now: () => number
  readonly #counts = new Map<string, Counted>()
  readonly #timer: NodeJS.Timeout

  constructor(redis: Redis, logger: Logger, now: () => number = Date.now) {
    this.#redis = redis
    this.#logger = logger
    this.#now = now
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Returns the count of a key. Is called when a key is looked up, not for each request. */
  of({ id, workspaceId }: SurfaceKey): KeyCount {
    const known = this.#counts.get(id)
    if (known !== undefined) {
      known.idleFlushes = 0
      return known.count
    }
    const count = { workspaceId, keyId: id, requests: 0, bytes: 0 }
    if (this.#counts.size < MAX_KEYS) this.#counts.set(id, { count, idleFlushes: 0 })
    return count
  }

  /** Adds what was counted to Redis. While Redis is unavailable, it is kept. */
  async flush(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const taken: KeyCount[] = []
    for (const [id, counted] of this.#counts) {
      const { count } = counted
      if (count.requests > 0) {
        taken.push({ ...count })
        count.requests = 0
        count.bytes = 0
        counted.idleFlushes = 0
      } else if (++counted.idleFlushes > IDLE_FLUSHES) this.#counts.delete(id)
    }
    const day = Math.floor(this.#now() / DAY_MS)
    try {
      for (let at = 0; at < taken.length; at += COUNTS_AT_ONCE) {
        await addKeyUsage(this.#redis, day, taken.slice(at, at + COUNTS_AT_ONCE))
      }
    } catch (error) {
      this.#logger.debug(errorFields(error), 'some counts of keys are lost')
    }
  }

  /** Adds the last counts to Redis. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
