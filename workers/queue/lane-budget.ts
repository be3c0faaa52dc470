import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

interface Waiter {
  readonly amount: number
  readonly grant: () => void
}

/** A waiting bulk job goes first after this time, so that a busy express lane cannot stop the bulk lane. */
const BULK_PATIENCE_MS = 1_000

/**
 * Bounds the bytes that the jobs of both lanes hold at the same time. Express jobs go first. Bulk jobs hold at most half of
 * the limit, or one job, so that an express job waits for little bulk work. An amount over the limit is granted once nothing
 * else is held.
 */
export class LaneBudget {
  readonly #limits: Readonly<Record<Lane, number>>
  readonly #limit: number
  readonly #held: Record<Lane, number> = { express: 0, bulk: 0 }
  readonly #waiting: Readonly<Record<Lane, Waiter[]>> = { express: [], bulk: [] }
  readonly #now: () => number
  #lastBulkAt: number

  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit
    this.#limits = { express: limit, bulk: limit / 2 }
    this.#now = now
    this.#lastBulkAt = now()
  }

  /**
   * Waits until the amount is free, holds it, and returns the function that gives it back. Throws a TransientError if the
   * signal fires before.
   */
  async acquire(lane: Lane, amount: number, abortSignal?: AbortSignal): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = {
      amount,
      grant() {
        abortSignal?.removeEventListener('abort', leave)
        resolve()
      },
    }
    const leave = () => {
      this.#waiting[lane].splice(this.#waiting[lane].indexOf(waiter), 1)
      reject(new TransientError('the deadline passed while waiting for other work to finish'))
      // The next waiter may request less.
      this.#serve()
    }
    this.#waiting[lane].push(waiter)
    abortSignal?.addEventListener('abort', leave, { once: true })
    if (abortSignal?.aborted) leave()
    else this.#serve()
    await promise
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#held[lane] -= amount
      this.#serve()
    }
  }

  /** Runs the task while the amount is held. Throws what the task throws. */
  async run<T>(lane: Lane, amount: number, task: () => Promise<T>): Promise<T> {
    const giveBack = await this.acquire(lane, amount)
    try {
      return await task()
    } finally {
      giveBack()
    }
  }

  #serve(): void {
    for (let lane = this.#next(); lane !== undefined; lane = this.#next()) {
      const next = this.#waiting[lane].shift() as Waiter
      this.#held[lane] += next.amount
      if (lane === 'bulk') this.#lastBulkAt = this.#now()
      next.grant()
    }
  }

  /** Returns the lane whose first waiter is served next, or undefined if no waiter can be served now. */
  #next(): Lane | undefined {
    const { express, bulk } = this.#waiting
    if (bulk.length === 0) return this.#hasRoom('express') ? 'express' : undefined
    const isBulkDue = express.length === 0 || this.#now() - this.#lastBulkAt >= BULK_PATIENCE_MS
    // A due bulk job that waits for room holds the express lane back, because it would otherwise never find any.
    if (isBulkDue && this.#held.bulk === 0) return this.#hasRoom('bulk') ? 'bulk' : undefined
    if (this.#hasRoom('express')) return 'express'
    return express.length === 0 && this.#hasRoom('bulk') ? 'bulk' : undefined
  }

  #hasRoom(lane: Lane): boolean {
    const first = this.#waiting[lane][0]
    if (first === undefined) return false
    const held = this.#held.express + this.#held.bulk
    if (held === 0) return true
    const fitsLane = this.#held[lane] === 0 || this.#held[lane] + first.amount <= this.#limits[lane]
    return fitsLane && held + first.amount <= this.#limit
  }
}
