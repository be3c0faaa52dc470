/** Lookups of unseen keys per second. Each is one or two reads of Redis, which serves about 100,000 a second. */
const LOOKUPS_PER_SECOND = 2_000
/** Lookups that may come at once after a pause, such as the first requests of all surfaces after a start. */
const BURST = 4_000

/**
 * Bounds how often a process looks up keys that it has not seen before (a token bucket). Well-formed keys can be made up by
 * anyone, and the Redis that knows the real ones may be the one that takes the commits.
 */
export class LookupBudget {
  readonly #now: () => number
  readonly #onRefused: () => void
  #left = BURST
  #filledAtMs: number

  constructor(now: () => number = Date.now, onRefused: () => void = () => {}) {
    this.#now = now
    this.#onRefused = onRefused
    this.#filledAtMs = now()
  }

  /** Takes one lookup. Returns false if none is left. */
  take(): boolean {
    const now = this.#now()
    const elapsedMs = Math.max(0, now - this.#filledAtMs)
    this.#left = Math.min(BURST, this.#left + (elapsedMs * LOOKUPS_PER_SECOND) / 1_000)
    this.#filledAtMs = now
    if (this.#left < 1) {
      this.#onRefused()
      return false
    }
    this.#left--
    return true
  }

  /** Gives a lookup back, because it has found a key. So real keys that are new do not use the budget up. */
  giveBack(): void {
    this.#left++
  }
}
