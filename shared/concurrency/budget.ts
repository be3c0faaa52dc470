import { TransientError } from '../runtime/errors.ts'

/** The lane of a waiter: the lanes of a queue (shared/queue/queue.ts). */
type Lane = 'express' | 'bulk'

/**
 * Which lane is served while both wait.
 *
 * - `express first`: bulk waiters hold at most half of the limit, or one amount, so that an express waiter waits for little
 *   bulk work. A bulk waiter goes first after `BULK_PATIENCE_MS`.
 * - `equal time`: the lane that has held less so far, as amount × time. A short task does not wait behind many long ones, and
 *   neither lane stops.
 */
type Order = 'express first' | 'equal time'

/** Options of a budget. */
interface BudgetOptions {
  readonly order?: Order
  readonly now?: () => number
  /** Called each time that everything was given back. */
  readonly onIdle?: () => void
}

/** How an amount is waited for. */
interface WaitOptions {
  /** Default: `express`. Waiters that all have one lane are served in the order of arrival. */
  readonly lane?: Lane
  readonly signal?: AbortSignal | undefined
}

interface Waiter {
  readonly amount: number
  readonly grant: () => void
}

/** A waiting bulk task goes first after this time, so that a busy express lane cannot stop the bulk lane. */
const BULK_PATIENCE_MS = 1_000

/**
 * Bounds how much may be held at once, in bytes or in slots. Waiters of a lane are served in the order of arrival, so a large
 * amount is not overtaken in its lane. An amount over the limit is granted once nothing else is held.
 */
export class Budget {
  readonly #limit: number
  readonly #order: Order
  readonly #now: () => number
  readonly #onIdle: (() => void) | undefined
  readonly #held: Record<Lane, number> = { express: 0, bulk: 0 }
  readonly #waiting: Readonly<Record<Lane, Waiter[]>> = { express: [], bulk: [] }
  /** Amount × time that tasks of a lane have held. */
  readonly #used: Record<Lane, number> = { express: 0, bulk: 0 }
  #lastBulkAt: number

  constructor(limit: number, { order = 'express first', now = () => performance.now(), onIdle }: BudgetOptions = {}) {
    this.#limit = limit
    this.#order = order
    this.#now = now
    this.#onIdle = onIdle
    this.#lastBulkAt = now()
  }

  /** Whether nothing is held. */
  get isIdle(): boolean {
    return this.#held.express + this.#held.bulk === 0
  }

  /**
   * Waits until the amount is free, holds it, and returns the function that gives it back. Throws a TransientError if the
   * signal fires before the amount is free.
   */
  async acquire(requested: number, { lane = 'express', signal }: WaitOptions = {}): Promise<() => void> {
    const amount = Math.min(requested, this.#limit)
    await this.#wait(lane, amount, signal)
    const grantedAt = this.#now()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#held[lane] -= amount
      this.#used[lane] += amount * (this.#now() - grantedAt)
      this.#serve()
      if (this.isIdle) this.#onIdle?.()
    }
  }

  /** Runs the task while the amount is held. Throws what `acquire` and the task throw. */
  async run<T>(requested: number, task: () => Promise<T>, options?: WaitOptions): Promise<T> {
    const giveBack = await this.acquire(requested, options)
    try {
      return await task()
    } finally {
      giveBack()
    }
  }

  #wait(lane: Lane, amount: number, signal: AbortSignal | undefined): Promise<void> {
    const waiting = this.#waiting[lane]
    // A lane does not save the time in which it had no waiters.
    if (waiting.length === 0) this.#used[lane] = Math.max(this.#used.express, this.#used.bulk)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      waiting.splice(waiting.indexOf(waiter), 1)
      reject(new TransientError('the deadline passed while waiting for other work to finish'))
      // The next waiter may request less.
      this.#serve()
    }
    const waiter: Waiter = {
      amount,
      grant() {
        signal?.removeEventListener('abort', leave)
        resolve()
      },
    }
    waiting.push(waiter)
    signal?.addEventListener('abort', leave, { once: true })
    if (signal?.aborted) leave()
    else this.#serve()
    return promise
  }

  #serve(): void {
    for (;;) {
      const lane = this.#nextLane()
      const [next] = this.#waiting[lane]
      if (next === undefined || !this.#hasRoom(lane, next.amount)) return
      this.#waiting[lane].shift()
      this.#held[lane] += next.amount
      if (lane === 'bulk') this.#lastBulkAt = this.#now()
      next.grant()
    }
  }

  #nextLane(): Lane {
    const { express, bulk } = this.#waiting
    if (bulk.length === 0) return 'express'
    if (express.length === 0) return 'bulk'
    if (this.#order === 'equal time') return this.#used.bulk < this.#used.express ? 'bulk' : 'express'
    // A due bulk waiter that finds no room holds the express lane back, because it would otherwise never find any.
    return this.#held.bulk === 0 && this.#now() - this.#lastBulkAt >= BULK_PATIENCE_MS ? 'bulk' : 'express'
  }

  #hasRoom(lane: Lane, amount: number): boolean {
    if (this.isIdle) return true
    if (this.#held.express + this.#held.bulk + amount > this.#limit) return false
    const isOverHalf = this.#held.bulk > 0 && this.#held.bulk + amount > this.#limit / 2
    return lane === 'express' || this.#order === 'equal time' || !isOverHalf
  }
}
