const NEWLINE = 0x0a

export interface NumberedLine {
  /** From 1. */
  readonly number: number
  readonly text: string
}

/** A text that cannot be taken; its message names the line. */
export class LineError extends Error {
  override readonly name = 'LineError'
}

/** The lines of UTF-8 text, without those that are blank. Throws a LineError for one that is longer than `limitBytes`. */
export async function* readLines(pieces: AsyncIterable<Uint8Array>, limitBytes: number): AsyncGenerator<NumberedLine> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let number = 1
  let held: Uint8Array[] = []
  let heldBytes = 0

  function take(piece: Uint8Array): string {
    hold(piece)
    const bytes = Buffer.concat(held)
    held = []
    heldBytes = 0
    try {
      return decoder.decode(bytes).trim()
    } catch (error) {
      throw new LineError(`line ${number}: is not UTF-8`, { cause: error })
    }
  }

  function hold(piece: Uint8Array): void {
    heldBytes += piece.length
    if (heldBytes > limitBytes) throw new LineError(`line ${number}: is longer than ${limitBytes} bytes`)
    held.push(piece)
  }

  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const text = take(piece.subarray(from, end))
      if (text !== '') yield { number, text }
      number += 1
      from = end + 1
    }
    hold(piece.subarray(from))
  }
  const text = take(new Uint8Array())
  if (text !== '') yield { number, text }
}
