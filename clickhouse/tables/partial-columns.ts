import type { GrowingBuffer } from '../native/growing-buffer.ts'

/** A column of values of one width; a row without a value has this byte throughout. */
interface FixedColumn {
  readonly buffer: GrowingBuffer
  readonly width: number
  readonly byte: number
}

/** A column of arrays: where each ends, and one buffer of their elements that tells how many there are. */
interface ArrayColumn {
  readonly offsets: GrowingBuffer
  readonly elements: GrowingBuffer
  readonly width: number
}

/**
 * Columns that only some rows have values for. They stay behind the table until a row needs them or the payload ends;
 * then the rows between get their defaults at once, by `memset` instead of by row.
 */
export abstract class PartialColumns {
  /** How many rows these columns have. */
  rows = 0
  protected abstract readonly fixed: readonly FixedColumn[]
  protected abstract readonly arrays: readonly ArrayColumn[]

  /** Defaults for the rows before `row`. Elements of arrays must not have been added for `row` yet. */
  fillTo(row: number): void {
    const count = row - this.rows
    if (count === 0) return
    for (let i = 0; i < this.fixed.length; i++) {
      const { buffer, width, byte } = this.fixed[i] as FixedColumn
      buffer.fillBytes(byte, count * width)
    }
    for (let i = 0; i < this.arrays.length; i++) {
      const { offsets, elements, width } = this.arrays[i] as ArrayColumn
      offsets.fillU64(elements.length / width, 0, count)
    }
    this.rows = row
  }
}
