import { doubled } from './trace-skeleton.ts'

const FIRST_CAPACITY = 1_024
/** The index of a text that did not fit. */
const NOT_KEPT = -1

/**
 * A column of texts: the distinct ones, and the index of the text of each row. Texts beyond the limit of bytes are not kept, so
 * that a client which names each of a million spans differently cannot fill the memory.
 */
export class TextColumn {
  readonly #indexes = new Map<string, number>()
  #rows = new Int32Array(FIRST_CAPACITY)
  #size = 0
  #bytesLeft: number

  /** `limitBytes` is that of the distinct texts. */
  constructor(limitBytes: number) {
    this.#bytesLeft = limitBytes
  }

  /** Adds the UTF-8 text `bytes[start, end)` as that of the next row. */
  add(bytes: Buffer, start: number, end: number): void {
    if (this.#size === this.#rows.length) this.#rows = new Int32Array(doubled(this.#rows))
    // Bytes are compared, one character for each of them: decoding UTF-8 of a million rows would take four times as long.
    this.#rows[this.#size++] = this.#keep(bytes.toString('latin1', start, end))
  }

  /** Returns the index of the text of a row, or a negative number if it is not kept. */
  indexOf(row: number): number {
    return this.#rows[row] ?? NOT_KEPT
  }

  /** Returns the distinct texts by their indexes. */
  distinct(): string[] {
    return Array.from(this.#indexes.keys(), text => Buffer.from(text, 'latin1').toString())
  }

  #keep(text: string): number {
    const known = this.#indexes.get(text)
    if (known !== undefined) return known
    if (text.length > this.#bytesLeft) return NOT_KEPT
    this.#bytesLeft -= text.length
    const index = this.#indexes.size
    this.#indexes.set(text, index)
    return index
  }
}
