import { LRUCache } from 'lru-cache'

/** Owners whose balance is remembered. */
const MAX_OWNERS = 10_000

interface Balance {
  readonly left: number
  readonly atMs: number
}

/** Size of a budget, and the time in which an empty one is refilled. */
interface BudgetSize {
  readonly amount: number
  readonly refillMs: number
}

/**
 * Gives each owner a budget that is refilled continuously. Work that has begun may overdraw it, because its cost is not
 * known before. The owner then waits until the debt is paid.
 */
export class RefilledBudgets {
  readonly #size: BudgetSize
  readonly #now: () => number
  /** Balances that are not full. An owner that is not in here has its whole budget. */
  readonly #balances = new LRUCache<string, Balance>({ max: MAX_OWNERS })

  constructor(size: BudgetSize, now: () => number = Date.now) {
    this.#size = size
    this.#now = now
  }

  /** Returns whether the owner may begin more work. */
  hasSome(owner: string): boolean {
    return this.#left(owner) > 0
  }

  /** Takes the cost of work from the budget of its owner. */
  spend(owner: string, cost: number): void {
    this.#balances.set(owner, { left: this.#left(owner) - cost, atMs: this.#now() })
  }

  #left(owner: string): number {
    const { amount, refillMs } = this.#size
    const balance = this.#balances.get(owner)
    if (balance === undefined) return amount
    const refilled = (Math.max(0, this.#now() - balance.atMs) * amount) / refillMs
    return Math.min(balance.left + refilled, amount)
  }
}
