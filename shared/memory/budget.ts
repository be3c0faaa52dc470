/** Bounds what may be held at once: bytes, or slots. Who asks first is served first; one larger amount is let in alone. */
export class Budget {
  #free: number
  readonly #limit: number
  readonly #queue: { amount: number; grant: () => void }[] = []

  constructor(limit: number) {
    this.#limit = limit
    this.#free = limit
  }

  /** Resolves when the amount may be held, to the function that gives it back. */
  async acquire(requested: number): Promise<() => void> {
    const amount = Math.min(requested, this.#limit)
    if (this.#queue.length > 0 || amount > this.#free) {
      await new Promise<void>(grant => this.#queue.push({ amount, grant }))
    } else {
      this.#free -= amount
    }
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#free += amount
      this.#serve()
    }
  }

  #serve(): void {
    for (let next = this.#queue[0]; next !== undefined && next.amount <= this.#free; next = this.#queue[0]) {
      this.#queue.shift()
      this.#free -= next.amount
      next.grant()
    }
  }
}
