/** How long the best reading is used. A clock of Redis that was set back is followed after two windows at the latest. */
const WINDOW_MS = 5_000

/**
 * Follows the clock of Redis on the monotonic clock of this process. A reply with Redis' time gives a lower bound of the
 * difference, because the time was read before the reply arrived. The highest bound of the last windows is used. So
 * `now()` is never later than the clock of Redis, and a deadline on it has passed there when it has passed here.
 */
export class RedisClock {
  readonly #now: () => number
  #best = Number.NEGATIVE_INFINITY
  #bestBefore = Number.NEGATIVE_INFINITY
  #windowEndsAt = 0

  constructor(now: () => number = performance.now.bind(performance)) {
    this.#now = now
  }

  /** False until Redis' time was read since the last `reset`. */
  get isKnown(): boolean {
    return this.#best > Number.NEGATIVE_INFINITY
  }

  /** Returns Redis' time in Unix ms, or slightly less. */
  now(): number {
    return this.#now() + Math.max(this.#best, this.#bestBefore)
  }

  /** Takes a time in Unix ms that Redis has just sent. */
  observe(redisTimeMs: number): void {
    const now = this.#now()
    if (now >= this.#windowEndsAt) {
      this.#bestBefore = this.#best
      this.#best = Number.NEGATIVE_INFINITY
      this.#windowEndsAt = now + WINDOW_MS
    }
    this.#best = Math.max(this.#best, redisTimeMs - now)
  }

  /** Forgets all readings. To be called when the connection is lost, because the next one may lead to another server. */
  reset(): void {
    this.#best = Number.NEGATIVE_INFINITY
    this.#bestBefore = Number.NEGATIVE_INFINITY
    this.#windowEndsAt = 0
  }
}
