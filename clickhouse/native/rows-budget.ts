import { type GrowingBuffer, type GrowthLimit, RowsTooLarge } from './growing-buffer.ts'
import { Leaves } from './leaves.ts'
import type { Dictionary } from './low-cardinality.ts'

/**
 * Bounds the bytes that one request adds to all buffers of its tables together. Buffers check the budget only when they
 * grow, and `end` is exact, so that appending a row costs nothing more.
 */
export class RowsBudget implements GrowthLimit {
  readonly #leaves: Leaves
  #startBytes = 0
  #limitBytes = Number.POSITIVE_INFINITY

  constructor(leaves: readonly (GrowingBuffer | Dictionary)[]) {
    this.#leaves = new Leaves(leaves)
    for (const buffer of this.#leaves.buffers) buffer.budget = this
    for (const { keys } of this.#leaves.dictionaries) keys.budget = this
  }

  /** Begins a request, which may add `limitBytes` to the `usedBytes` of its tables. */
  begin(limitBytes: number, usedBytes: number): void {
    this.#startBytes = usedBytes
    this.#limitBytes = limitBytes
  }

  /** Throws `RowsTooLarge` if the request would have added more than it may with `moreBytes`. */
  check(moreBytes: number): void {
    this.end(this.#leaves.usedBytes + moreBytes)
  }

  /** Throws `RowsTooLarge` if the request has added more than it may. `usedBytes` are those of its tables now. */
  end(usedBytes: number): void {
    if (usedBytes - this.#startBytes > this.#limitBytes) throw new RowsTooLarge()
  }

  /** Bytes of memory that the buffers occupy, including what is not used. */
  get capacityBytes(): number {
    return this.#leaves.capacityBytes
  }
}
