import type { Lane } from '../../../shared/queue/queue.ts'

interface Waiter {
  readonly slots: number
  readonly grant: () => void
}

/**
 * Shares threads between the chunks of both lanes. While both lanes wait, the one whose chunks have taken less time is served
 * next: a chunk that takes milliseconds does not wait behind many that take half a second each, and neither lane stops. A lane is
 * served in order, so that a chunk that waits for all threads is not overtaken.
 */
export class ThreadSlots {
  #free: number
  readonly #now: () => number
  readonly #waiting: Readonly<Record<Lane, Waiter[]>> = { express: [], bulk: [] }
  /** Time that threads have worked for the chunks of a lane. */
  readonly #usedMs: Record<Lane, number> = { express: 0, bulk: 0 }

  constructor(slots: number, now: () => number = () => performance.now()) {
    this.#free = slots
    this.#now = now
  }

  /** Runs the task while it has this many slots. Throws what the task throws. */
  async run<T>(lane: Lane, slots: number, task: () => Promise<T>): Promise<T> {
    await this.#acquire(lane, slots)
    const startedAt = this.#now()
    try {
      return await task()
    } finally {
      this.#usedMs[lane] += (this.#now() - startedAt) * slots
      this.#free += slots
      this.#serve()
    }
  }

  #acquire(lane: Lane, slots: number): Promise<void> {
    const waiting = this.#waiting[lane]
    // A lane does not save the time in which it had no chunks.
    if (waiting.length === 0) this.#usedMs[lane] = Math.max(this.#usedMs.express, this.#usedMs.bulk)
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ slots, grant: resolve })
    this.#serve()
    return promise
  }

  #serve(): void {
    for (;;) {
      const waiting = this.#waiting[this.#nextLane()]
      const [next] = waiting
      if (next === undefined || next.slots > this.#free) return
      waiting.shift()
      this.#free -= next.slots
      next.grant()
    }
  }

  #nextLane(): Lane {
    const { express, bulk } = this.#waiting
    if (express.length === 0) return 'bulk'
    return bulk.length > 0 && this.#usedMs.bulk < this.#usedMs.express ? 'bulk' : 'express'
  }
}
