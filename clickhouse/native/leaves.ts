import type { GrowingBuffer } from './growing-buffer.ts'
import { Dictionary } from './low-cardinality.ts'

/**
 * The buffers and dictionaries that hold the rows of tables, each once. Every request walks all of them, a hundred for
 * spans, so the two kinds are kept apart: V8 reads a field of objects of one class in a nanosecond.
 */
export class Leaves {
  readonly buffers: readonly GrowingBuffer[]
  readonly dictionaries: readonly Dictionary[]
  /** Buffers, then dictionaries. */
  readonly all: readonly (GrowingBuffer | Dictionary)[]

  constructor(leaves: Iterable<GrowingBuffer | Dictionary>) {
    const distinct = [...new Set(leaves)]
    this.buffers = distinct.filter((leaf): leaf is GrowingBuffer => !(leaf instanceof Dictionary))
    this.dictionaries = distinct.filter(leaf => leaf instanceof Dictionary)
    this.all = [...this.buffers, ...this.dictionaries]
  }

  /** Bytes that are written, and the memory of the keys of dictionaries beside their bytes. */
  get usedBytes(): number {
    const { buffers, dictionaries } = this
    let sum = 0
    for (let i = 0; i < buffers.length; i++) sum += (buffers[i] as GrowingBuffer).length
    for (let i = 0; i < dictionaries.length; i++) sum += (dictionaries[i] as Dictionary).usedBytes
    return sum
  }

  /** Bytes of memory that the leaves occupy, including what is not used. */
  get capacityBytes(): number {
    const { buffers, dictionaries } = this
    let sum = 0
    for (let i = 0; i < buffers.length; i++) sum += (buffers[i] as GrowingBuffer).bytes.length
    for (let i = 0; i < dictionaries.length; i++) sum += (dictionaries[i] as Dictionary).capacityBytes
    return sum
  }

  /** Writes the current lengths into `marks`. Returns `usedBytes`. */
  mark(marks: number[]): number {
    const { buffers, dictionaries } = this
    let sum = 0
    for (let i = 0; i < buffers.length; i++) {
      const { length } = buffers[i] as GrowingBuffer
      marks[i] = length
      sum += length
    }
    for (let i = 0; i < dictionaries.length; i++) {
      const dictionary = dictionaries[i] as Dictionary
      marks[buffers.length + i] = dictionary.length
      sum += dictionary.usedBytes
    }
    return sum
  }

  /** Goes back to earlier lengths. */
  rewind(marks: readonly number[]): void {
    for (const [i, leaf] of this.all.entries()) leaf.truncate(marks[i] ?? 0)
  }

  /** Empties the leaves and keeps their memory. */
  reset(): void {
    for (const leaf of this.all) leaf.reset()
  }

  /** Empties the leaves and gives their memory back. */
  shrink(): void {
    for (const leaf of this.all) leaf.shrink()
  }
}
