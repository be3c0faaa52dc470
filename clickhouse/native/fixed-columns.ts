import type { GrowingBuffer } from './growing-buffer.ts'

/** Fewer rows than this take too little memory for a check before it is taken. The check at the end of a request finds them. */
const CHECKED_FROM_ROWS = 1_000

/** The columns of fixed width of a table. Their rows are written at `row * width`, without a check of each. */
export class FixedColumns {
  readonly #buffers: readonly GrowingBuffer[]
  readonly #widths: readonly number[]
  readonly #rowBytes: number

  /** `rowBytes` is the size in all columns of a row whose texts are empty. */
  constructor(columns: readonly (readonly [GrowingBuffer, number])[], rowBytes: number) {
    this.#buffers = columns.map(([buffer]) => buffer)
    this.#widths = columns.map(([, width]) => width)
    this.#rowBytes = rowBytes
  }

  /** Makes room for `count` more rows. Throws `RowsTooLarge` before any column grows if the rows exceed the budget. */
  reserve(count: number): void {
    const buffers = this.#buffers
    if (count >= CHECKED_FROM_ROWS) buffers[0]?.budget?.check(count * this.#rowBytes)
    for (let i = 0; i < buffers.length; i++) (buffers[i] as GrowingBuffer).reserve(count * (this.#widths[i] as number))
  }

  /** Sets the number of rows. All of them must have been written. */
  commit(rows: number): void {
    const buffers = this.#buffers
    for (let i = 0; i < buffers.length; i++) (buffers[i] as GrowingBuffer).length = rows * (this.#widths[i] as number)
  }
}
