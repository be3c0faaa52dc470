import { TransientError } from '../runtime/errors.ts'

interface Waiter {
  readonly amount: number
  readonly grant: () => void
}

/**
 * Bounds how much may be held at once, in bytes or in slots. Amounts are granted in the order in which they were requested.
 * An amount over the limit is granted once nothing else is held.
 */
export class Budget {
  #free: number
  readonly #limit: number
  readonly #onIdle: (() => void) | undefined
  readonly #queue: Waiter[] = []

  /** `onIdle` is called each time that everything was given back. */
  constructor(limit: number, onIdle?: () => void) {
    this.#limit = limit
    this.#free = limit
    this.#onIdle = onIdle
  }

  /** Whether nothing is held. */
  get isIdle(): boolean {
    return this.#free === this.#limit
  }

  /**
   * Waits until the amount is free, holds it, and returns the function that gives it back. Throws a TransientError if the
   * signal fires before the amount is free.
   */
  async acquire(requested: number, abortSignal?: AbortSignal): Promise<() => void> {
    const amount = Math.min(requested, this.#limit)
    if (this.#queue.length > 0 || amount > this.#free) await this.#wait(amount, abortSignal)
    else this.#free -= amount
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#free += amount
      this.#serve()
      if (this.isIdle) this.#onIdle?.()
    }
  }

  /** Runs the task while the amount is held. Throws what `acquire` and the task throw. */
  async run<T>(requested: number, task: () => Promise<T>, abortSignal?: AbortSignal): Promise<T> {
    const giveBack = await this.acquire(requested, abortSignal)
    try {
      return await task()
    } finally {
      giveBack()
    }
  }

  #wait(amount: number, abortSignal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(waiter), 1)
        reject(new TransientError('the deadline passed while waiting for other work to finish'))
        // The next waiter may request less.
        this.#serve()
      }
      const waiter: Waiter = {
        amount,
        grant() {
          abortSignal?.removeEventListener('abort', leave)
          resolve()
        },
      }
      this.#queue.push(waiter)
      abortSignal?.addEventListener('abort', leave, { once: true })
      if (abortSignal?.aborted) leave()
    })
  }

  #serve(): void {
    for (let next = this.#queue[0]; next !== undefined && next.amount <= this.#free; next = this.#queue[0]) {
      this.#queue.shift()
      this.#free -= next.amount
      next.grant()
    }
  }
}
