/** Owners that are kept while they hold nothing: most take something again soon, and joining costs more than keeping them. */
const KEPT_OWNERS = 1_024

/**
 * Divides a limit among owners by dynamic thresholds (Choudhury and Hahne, 1998): an owner may hold at most `weight` times
 * what is still free. One owner alone gets weight / (weight + 1) of the limit, n busy owners share n·weight / (n·weight + 1)
 * of it equally, and an owner that holds nothing always finds room. No owner needs to be known beforehand.
 *
 * An owner named `group/name` belongs to a group, as a surface belongs to its workspace. The threshold then applies to the
 * mean of what the owner holds and what its group holds. An owner that is alone in its group has the same share as without
 * one. All owners of a group together get at most 2·weight / (2·weight + 1) of the limit, however many they are.
 */
export class FairShares {
  readonly #limit: number
  readonly #weight: number
  readonly #owners = new Map<string, Holding>()
  readonly #groups = new Map<string, Holding>()
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
    return this.#owners.get(owner)?.amount ?? 0
  }

  /** Adds the amount to what the owner holds. Returns false, and adds nothing, if it exceeds the owner's share. */
  take(owner: string, amount: number): boolean {
    const holding = this.#owners.get(owner) ?? this.#join(owner)
    const { group } = holding
    const free = this.#limit - this.#used
    if (amount > free || (holding.amount + group.amount) / 2 + amount > this.#weight * free) {
      if (holding.amount === 0) this.#leave(owner, holding)
      return false
    }
    this.#used += amount
    holding.amount += amount
    if (group !== holding) group.amount += amount
    return true
  }

  /** Subtracts an amount that the owner has taken. */
  give(owner: string, amount: number): void {
    const holding = this.#owners.get(owner)
    if (holding === undefined) return
    this.#used -= amount
    holding.amount -= amount
    if (holding.group !== holding) holding.group.amount -= amount
    if (holding.amount === 0) this.#leave(owner, holding)
  }

  #join(owner: string): Holding {
    const end = owner.indexOf('/')
    const holding = new Holding(end < 0 ? undefined : this.#groupNamed(owner.slice(0, end)))
    this.#owners.set(owner, holding)
    holding.group.owners++
    return holding
  }

  #groupNamed(name: string): Holding {
    const known = this.#groups.get(name)
    if (known !== undefined) return known
    const group = new Holding()
    this.#groups.set(name, group)
    return group
  }

  /** Forgets an owner that holds nothing, unless few are known. */
  #leave(owner: string, { group }: Holding): void {
    if (this.#owners.size <= KEPT_OWNERS) return
    this.#owners.delete(owner)
    const end = owner.indexOf('/')
    if (--group.owners === 0 && end >= 0) this.#groups.delete(owner.slice(0, end))
  }
}

/** What an owner holds, or all owners of a group together. */
class Holding {
  amount = 0
  /** Number of known owners of a group. */
  owners = 0
  /** The group of an owner. An owner without one is its own group. */
  readonly group: Holding

  constructor(group?: Holding) {
    this.group = group ?? this
  }
}
