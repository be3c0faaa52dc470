import { type GrowingBuffer, type GrowthLimit, RowsTooLarge } from './growing-buffer.ts'
import { Dictionary } from './low-cardinality.ts'

/** Memory that a key takes in addition to its bytes in the column: the text, and its places in a map and two arrays. */
const KEY_BYTES = 128

/**
 * Bounds the bytes that one request adds to all buffers of its tables together. Buffers check the budget only when they
 * grow, and `check` is exact at the end of a request, so that appending a row costs nothing more.
 */
export class RowsBudget implements GrowthLimit {
  readonly #buffers: readonly GrowingBuffer[]
  readonly #dictionaries: readonly Dictionary[]
  #startBytes = 0
  #limitBytes = Number.POSITIVE_INFINITY

  constructor(leaves: readonly (GrowingBuffer | Dictionary)[]) {
    this.#buffers = leaves.map(leaf => (leaf instanceof Dictionary ? leaf.keys : leaf))
    this.#dictionaries = leaves.filter(leaf => leaf instanceof Dictionary)
    for (const buffer of this.#buffers) buffer.budget = this
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
    let sum = this.#keyBytes()
    const buffers = this.#buffers
    for (let i = 0; i < buffers.length; i++) sum += (buffers[i] as GrowingBuffer).bytes.length
    return sum
  }

  #usedBytes(): number {
    let sum = this.#keyBytes()
    const buffers = this.#buffers
    for (let i = 0; i < buffers.length; i++) sum += (buffers[i] as GrowingBuffer).length
    return sum
  }

  #keyBytes(): number {
    let keys = 0
    const dictionaries = this.#dictionaries
    for (let i = 0; i < dictionaries.length; i++) keys += (dictionaries[i] as Dictionary).length
    return keys * KEY_BYTES
  }
}
