/**
 * Divides a limit among owners by dynamic thresholds (Choudhury and Hahne, 1998): an owner may hold at most `weight` times
 * what is still free. One owner alone gets weight / (weight + 1) of the limit, n busy owners share n·weight / (n·weight + 1)
 * of it equally, and an owner that holds nothing always finds room. No owner needs to be known beforehand.
 */
export class FairShares {
  readonly #limit: number
  readonly #weight: number
  /** Owners that hold something. */
  readonly #held = new Map<string, number>()
  #used = 0

  constructor(limit: number, weight = 1) {
    this.#limit = limit
    this.#weight = weight
  }

  /** The amount that all owners hold. */
  get used(): number {
    return this.#used
  }

  /** Returns the amount that an owner holds. */
  heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  /** Adds the amount to what the owner holds. Returns false, and adds nothing, if it exceeds the owner's share. */
  take(owner: string, amount: number): boolean {
    const total = this.heldBy(owner) + amount
    const free = this.#limit - this.#used
    if (amount > free || total > this.#weight * free) return false
    this.#used += amount
    this.#held.set(owner, total)
    return true
  }

  /** Subtracts an amount that the owner has taken. */
  give(owner: string, amount: number): void {
    const left = this.heldBy(owner) - amount
    if (left > 0) this.#held.set(owner, left)
    else this.#held.delete(owner)
    this.#used -= amount
  }
}
