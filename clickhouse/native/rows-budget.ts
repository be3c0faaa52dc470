import { type GrowthLimit, RowsTooLarge } from './growing-buffer.ts'

/** A buffer or a dictionary of a column. */
interface BudgetedBuffer {
  readonly usedBytes: number
  readonly capacityBytes: number
  budget: GrowthLimit | undefined
}

/**
 * Bounds the bytes that one request adds to all buffers of its tables together. Buffers check the budget only when they
 * grow, and `check` is exact at the end of a request, so that appending a row costs nothing more.
 */
export class RowsBudget implements GrowthLimit {
  readonly #buffers: readonly BudgetedBuffer[]
  #startBytes = 0
  #limitBytes = Number.POSITIVE_INFINITY

  constructor(buffers: readonly BudgetedBuffer[]) {
    this.#buffers = buffers
    for (const buffer of buffers) buffer.budget = this
  }

  /** Begins a request, which may add `limitBytes`. */
  begin(limitBytes: number): void {
    this.#startBytes = this.#usedBytes()
    this.#limitBytes = limitBytes
  }

  /** Throws `RowsTooLarge` if the request has added more than it may, or would with `moreBytes`. */
  check(moreBytes: number): void {
    if (this.#usedBytes() - this.#startBytes + moreBytes > this.#limitBytes) throw new RowsTooLarge()
  }

  /** Bytes of memory that the buffers occupy, including what is not used. */
  get capacityBytes(): number {
    let sum = 0
    for (let i = 0; i < this.#buffers.length; i++) sum += (this.#buffers[i] as BudgetedBuffer).capacityBytes
    return sum
  }

  #usedBytes(): number {
    let sum = 0
    for (let i = 0; i < this.#buffers.length; i++) sum += (this.#buffers[i] as BudgetedBuffer).usedBytes
    return sum
  }
}
