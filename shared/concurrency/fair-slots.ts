import { TransientError } from '../runtime/errors.ts'
import { FairShares } from './fair-shares.ts'

/** Limits of `FairSlots`. */
interface FairSlotsOptions {
  /** How many tasks may run at once. One owner may have at most as many as slots are still free. */
  readonly slots: number
  /** How many tasks may wait. One owner may have at most as many as there is still room for. */
  readonly waiting: number
}

/** A granted slot. */
export interface HeldSlot {
  /** Gives the slot back. Further calls do nothing. */
  release(): void
}

/**
 * Shares slots among owners. A task over the share of its owner waits, and owners with waiting tasks are served in turn,
 * so that many tasks of one owner do not delay the task of another.
 */
export class FairSlots {
  readonly #held: FairShares
  readonly #waiting: FairShares
  /** The waiting tasks by owner, in the order in which the owners are served. No queue is empty. */
  readonly #queues = new Map<string, (() => void)[]>()

  constructor({ slots, waiting }: FairSlotsOptions) {
    this.#held = new FairShares(slots)
    this.#waiting = new FairShares(waiting)
  }

  /**
   * Waits until the owner may have another slot. Returns undefined if too many tasks wait already, or if the signal fires
   * before a slot is free.
   */
  async acquire(owner: string, signal: AbortSignal): Promise<HeldSlot | undefined> {
    if (signal.aborted) return undefined
    if (this.#queues.has(owner) || !this.#held.take(owner, 1)) {
      if (!this.#waiting.take(owner, 1)) return undefined
      const isGranted = await this.#wait(owner, signal)
      this.#waiting.give(owner, 1)
      if (!isGranted) return undefined
    }
    let isHeld = true
    return {
      release: () => {
        if (!isHeld) return
        isHeld = false
        this.#held.give(owner, 1)
        this.#serve()
      },
    }
  }

  /**
   * Runs the task while a slot is held. Throws a TransientError if too many tasks wait already or the signal fires before a
   * slot is free, and what the task throws.
   */
  async run<T>(owner: string, task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const slot = await this.acquire(owner, signal)
    if (slot === undefined) throw new TransientError('no slot was free in time')
    try {
      return await task()
    } finally {
      slot.release()
    }
  }

  /** Returns false if the signal fires first. */
  #wait(owner: string, signal: AbortSignal): Promise<boolean> {
    return new Promise(resolve => {
      const leave = () => {
        this.#remove(owner, grant)
        resolve(false)
      }
      const grant = () => {
        signal.removeEventListener('abort', leave)
        resolve(true)
      }
      const queue = this.#queues.get(owner)
      if (queue) queue.push(grant)
      else this.#queues.set(owner, [grant])
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** Grants free slots to the first task of each owner in turn, until no owner may have more. */
  #serve(): void {
    for (let isServed = true; isServed; ) {
      isServed = false
      for (const [owner, [grant]] of [...this.#queues]) {
        if (grant === undefined || !this.#held.take(owner, 1)) continue
        const rest = this.#remove(owner, grant)
        // The owner goes to the end of the order.
        if (rest) {
          this.#queues.delete(owner)
          this.#queues.set(owner, rest)
        }
        grant()
        isServed = true
      }
    }
  }

  /** Removes a waiting task. Returns the other waiting tasks of its owner, or undefined if there are none. */
  #remove(owner: string, grant: () => void): (() => void)[] | undefined {
    const queue = this.#queues.get(owner)
    if (queue === undefined) return undefined
    const index = queue.indexOf(grant)
    if (index >= 0) queue.splice(index, 1)
    if (queue.length > 0) return queue
    this.#queues.delete(owner)
    return undefined
  }
}
