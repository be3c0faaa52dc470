import { KIB, MIB } from '../../schemas/units.ts'

const PIECE_BYTES = 128 * KIB
/** Longest line that is read, as of a stored chunk. A snapshot of a very large page has a tenth of that. */
const LINE_BYTES_MAX = 16 * MIB

/** A line and its size. The text is undefined if the line is too long. */
interface Line {
  readonly text: string | undefined
  readonly bytes: number
}

/** Reads the lines of a file piece by piece, so that no more than one line and one piece are in memory. */
export class LineReader {
  readonly #lines: Blob
  readonly #decoder = new TextDecoder()
  #at = 0
  #begun: string[] = []
  #begunBytes = 0

  constructor(lines: Blob) {
    this.#lines = lines
  }

  /** Returns the lines that end in the next piece, or undefined at the end. */
  async read(): Promise<readonly Line[] | undefined> {
    if (this.#at >= this.#lines.size) return undefined
    const piece = await this.#lines.slice(this.#at, this.#at + PIECE_BYTES).arrayBuffer()
    this.#at += piece.byteLength
    const isLast = this.#at >= this.#lines.size
    const parts = this.#decoder.decode(piece, { stream: !isLast }).split('\n')
    const lines: Line[] = []
    for (const [i, part] of parts.entries()) {
      this.#begunBytes += part.length
      if (this.#begunBytes <= LINE_BYTES_MAX) this.#begun.push(part)
      if (i === parts.length - 1 && !isLast) break
      const isTooLong = this.#begunBytes > LINE_BYTES_MAX
      const text = isTooLong ? undefined : this.#begun.join('')
      if (text !== '') lines.push({ text, bytes: this.#begunBytes })
      this.#begun = []
      this.#begunBytes = 0
    }
    return lines
  }
}
