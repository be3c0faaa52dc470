import { TransientError } from '../runtime/errors.ts'
import { FairShares } from './fair-shares.ts'

/** Limits of `FairSlots`. */
interface FairSlotsOptions {
  /** How many tasks may run at once. One owner may have at most as many as slots are still free, unless `perOwner` is given. */
  readonly slots: number
  /** How many tasks of one owner may run at once, however many slots are free. */
  readonly perOwner?: number
  /** How many tasks may wait. One owner may have at most as many as there is still room for. Default: no limit. */
  readonly waiting?: number
}

/** A granted slot. */
export interface Slot {
  /** Gives the slot back. Further calls do nothing. */
  release(): void
}

/**
 * Shares slots among owners. A task over the share of its owner waits, and owners with waiting tasks are served in turn,
 * so that an owner with a thousand tasks delays the only task of another by one task per slot.
 */
export class FairSlots {
  readonly #held: FairShares
  readonly #waiting: FairShares
  readonly #perOwner: number
  /** The waiting tasks by owner, in the order in which the owners are served. No queue is empty. */
  readonly #queues = new Map<string, (() => void)[]>()

  constructor({ slots, perOwner, waiting = Number.POSITIVE_INFINITY }: FairSlotsOptions) {
    // An infinite weight leaves the number of slots as the only limit.
    this.#held = new FairShares(slots, perOwner === undefined ? 1 : Number.POSITIVE_INFINITY)
    this.#perOwner = perOwner ?? slots
    this.#waiting = new FairShares(waiting)
  }

  /** Returns the number of tasks that an owner has in progress or waiting. */
  tasksOf(owner: string): number {
    return this.#held.heldBy(owner) + this.#waiting.heldBy(owner)
  }

  /**
   * Waits until the owner may have another slot. Returns undefined if too many tasks wait already, or if the signal fires
   * before a slot is free.
   */
  async acquire(owner: string, signal?: AbortSignal): Promise<Slot | undefined> {
    if (signal?.aborted) return undefined
    if (this.#queues.has(owner) || !this.#take(owner)) {
      if (!this.#waiting.take(owner, 1)) return undefined
      if (!(await this.#wait(owner, signal))) return undefined
    }
    let isHeld = true
    return {
      release: () => {
        if (!isHeld) return
        isHeld = false
        this.#held.give(owner, 1)
        // Its next turn comes after those of the owners that have waited meanwhile.
        this.#moveToEnd(owner)
        this.#serve()
      },
    }
  }

  /**
   * Runs the task while a slot is held. Throws a TransientError if too many tasks wait already or the signal fires before a
   * slot is free, and what the task throws.
   */
  async run<T>(owner: string, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const slot = await this.acquire(owner, signal)
    if (slot === undefined) throw new TransientError('no slot was free in time')
    try {
      return await task()
    } finally {
      slot.release()
    }
  }

  /** Returns false if the signal fires first. */
  #wait(owner: string, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise(resolve => {
      const leave = () => {
        this.#remove(owner, grant)
        resolve(false)
      }
      const grant = () => {
        signal?.removeEventListener('abort', leave)
        resolve(true)
      }
      const queue = this.#queues.get(owner)
      if (queue) queue.push(grant)
      else this.#queues.set(owner, [grant])
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  #take(owner: string): boolean {
    return this.#held.heldBy(owner) < this.#perOwner && this.#held.take(owner, 1)
  }

  /** Grants free slots to the first task of each owner in turn, until no owner may have more. */
  #serve(): void {
    for (let isServed = true; isServed; ) {
      isServed = false
      for (const [owner, [grant]] of [...this.#queues]) {
        if (grant === undefined || !this.#take(owner)) continue
        this.#remove(owner, grant)
        this.#moveToEnd(owner)
        grant()
        isServed = true
      }
    }
  }

  /** Removes a waiting task. */
  #remove(owner: string, grant: () => void): void {
    this.#waiting.give(owner, 1)
    const queue = this.#queues.get(owner)
    queue?.splice(queue.indexOf(grant), 1)
    if (queue?.length === 0) this.#queues.delete(owner)
  }

  /** Makes an owner with waiting tasks the last that is served. */
  #moveToEnd(owner: string): void {
    const queue = this.#queues.get(owner)
    if (queue === undefined) return
    this.#queues.delete(owner)
    this.#queues.set(owner, queue)
  }
}
