import { LRUCache } from 'lru-cache'

const MINUTE_MS = 60_000
/** Owners whose balance is remembered. */
const MAX_OWNERS = 10_000

interface Balance {
  readonly ms: number
  readonly atMs: number
}

/**
 * Gives each owner a budget of time that is refilled continuously. Work that has begun may overdraw it, because its
 * length is not known before. The owner then waits until the debt is paid.
 */
export class TimeBudgets {
  readonly #msPerMinute: number
  readonly #now: () => number
  /** Balances that are not full. An owner that is not in here has its whole budget. */
  readonly #balances = new LRUCache<string, Balance>({ max: MAX_OWNERS })

  constructor(msPerMinute: number, now: () => number = Date.now) {
    this.#msPerMinute = msPerMinute
    this.#now = now
  }

  /** Returns whether the owner may begin more work. */
  hasTime(owner: string): boolean {
    return this.#balanceMs(owner) > 0
  }

  /** Takes the time of work from the budget of its owner. */
  spend(owner: string, ms: number): void {
    this.#balances.set(owner, { ms: this.#balanceMs(owner) - ms, atMs: this.#now() })
  }

  #balanceMs(owner: string): number {
    const balance = this.#balances.get(owner)
    if (balance === undefined) return this.#msPerMinute
    const refilledMs = (Math.max(0, this.#now() - balance.atMs) * this.#msPerMinute) / MINUTE_MS
    return Math.min(balance.ms + refilledMs, this.#msPerMinute)
  }
}
