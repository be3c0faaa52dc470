import type { Budget } from '../../../shared/concurrency/budget.ts'

/** A place among the inserts of a pool. A batch that its store keeps refusing leaves it to other batches while it waits. */
export class InsertSlot {
  readonly #slots: Budget
  #release: (() => void) | undefined

  constructor(slots: Budget) {
    this.#slots = slots
  }

  /** Waits until a slot of the pool is free, unless this batch has one. */
  async hold(): Promise<this> {
    this.#release ??= await this.#slots.acquire(1)
    return this
  }

  /** Gives the slot back, if this batch has one. */
  release(): void {
    this.#release?.()
    this.#release = undefined
  }
}
