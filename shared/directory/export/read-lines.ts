const NEWLINE = 0x0a

/** A line of a text. */
interface NumberedLine {
  /** Number of the line, counted from 1. */
  readonly number: number
  readonly text: string
}

/** An invalid line. The message contains its number. */
export class LineError extends Error {
  override readonly name = 'LineError'
}

/** Yields the lines of a UTF-8 text, without blank lines. Throws a LineError if a line is longer than `limitBytes`. */
export async function* readLines(pieces: AsyncIterable<Uint8Array>, limitBytes: number): AsyncGenerator<NumberedLine> {
  const line = new LineBuffer(limitBytes)
  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      line.append(piece.subarray(from, end))
      const taken = line.take()
      if (taken.text !== '') yield taken
      from = end + 1
    }
    line.append(piece.subarray(from))
  }
  const last = line.take()
  if (last.text !== '') yield last
}

/** Collects the pieces of the current line. */
class LineBuffer {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  readonly #limitBytes: number
  #number = 1
  #pieces: Uint8Array[] = []
  #bytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  append(piece: Uint8Array): void {
    this.#bytes += piece.length
    if (this.#bytes > this.#limitBytes) {
      throw new LineError(`line ${this.#number}: is longer than ${this.#limitBytes} bytes`)
    }
    this.#pieces.push(piece)
  }

  /** Returns the current line and starts the next one. */
  take(): NumberedLine {
    const bytes = Buffer.concat(this.#pieces)
    const number = this.#number
    this.#number += 1
    this.#pieces = []
    this.#bytes = 0
    try {
      return { number, text: this.#decoder.decode(bytes).trim() }
    } catch (error) {
      throw new LineError(`line ${number}: is not UTF-8`, { cause: error })
    }
  }
}
