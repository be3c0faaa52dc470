/** The index of a text that did not fit. */
const NOT_KEPT = -1

/**
 * The distinct texts of a column, each with its index in the order in which they came first. Texts beyond the limit of bytes
 * are not kept, so that a client which names each of a million spans differently cannot fill the memory.
 */
export class TextIndex {
  readonly #indexes = new Map<string, number>()
  #bytesLeft: number

  constructor(limitBytes: number) {
    this.#bytesLeft = limitBytes
  }

  /** Returns the index of the UTF-8 text `bytes[start, end)`, or `NOT_KEPT`. */
  indexOf(bytes: Buffer, start: number, end: number): number {
    // Bytes are compared, one character for each of them: decoding UTF-8 of a million rows would take four times as long.
    const key = bytes.toString('latin1', start, end)
    const known = this.#indexes.get(key)
    if (known !== undefined) return known
    if (end - start > this.#bytesLeft) return NOT_KEPT
    this.#bytesLeft -= end - start
    const index = this.#indexes.size
    this.#indexes.set(key, index)
    return index
  }

  /** Returns the texts by their indexes. */
  texts(): string[] {
    return Array.from(this.#indexes.keys(), key => Buffer.from(key, 'latin1').toString())
  }
}
