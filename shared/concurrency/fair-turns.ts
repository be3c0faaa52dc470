/** Bounds of {@link FairTurns}. */
interface FairTurnsLimits {
  /** Tasks in progress at the same time. */
  readonly total: number
  /** Tasks of one owner in progress at the same time. */
  readonly perOwner: number
}

interface Owner {
  running: number
  readonly waiting: (() => void)[]
}

/**
 * Runs the tasks of many owners in turns: a free slot goes to the owner that has waited longest for its turn, whatever
 * the number of its tasks. So an owner with a thousand tasks delays the only task of another by one task per slot.
 */
export class FairTurns {
  readonly #limits: FairTurnsLimits
  #running = 0
  /** Owners with tasks, in the order of their turns. */
  readonly #owners = new Map<string, Owner>()

  constructor(limits: FairTurnsLimits) {
    this.#limits = limits
  }

  /** Number of owners that have tasks in progress or waiting. */
  get owners(): number {
    return this.#owners.size
  }

  /** Returns the number of tasks that an owner has in progress or waiting. */
  tasksOf(owner: string): number {
    const { running = 0, waiting = [] } = this.#owners.get(owner) ?? {}
    return running + waiting.length
  }

  /** Runs the task when it is its turn. Throws what the task throws. */
  async run<T>(owner: string, task: () => Promise<T>): Promise<T> {
    await new Promise<void>(resolve => {
      const known = this.#owners.get(owner)
      if (known) known.waiting.push(resolve)
      else this.#owners.set(owner, { running: 0, waiting: [resolve] })
      this.#serve()
    })
    try {
      return await task()
    } finally {
      this.#end(owner)
    }
  }

  #end(name: string): void {
    const owner = this.#owners.get(name) as Owner
    this.#running--
    owner.running--
    // Its next turn comes after those of the owners that waited meanwhile.
    this.#owners.delete(name)
    if (owner.running > 0 || owner.waiting.length > 0) this.#owners.set(name, owner)
    this.#serve()
  }

  #serve(): void {
    while (this.#running < this.#limits.total && this.#startNext());
  }

  #startNext(): boolean {
    for (const [name, owner] of this.#owners) {
      if (owner.waiting.length === 0 || owner.running === this.#limits.perOwner) continue
      this.#running++
      owner.running++
      this.#owners.delete(name)
      this.#owners.set(name, owner)
      owner.waiting.shift()?.()
      return true
    }
    return false
  }
}
