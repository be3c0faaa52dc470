import { EventTimeReader } from './read-event-time.ts'

/** The text of a chunk, from its beginning. */
export interface TextPieces {
  /** Returns the next piece, or undefined at the end. */
  read(): Promise<Buffer | undefined>
  close(): void
}

const LINE_FEED = 0x0a
const EMPTY = Buffer.alloc(0)

/**
 * Reads the times of the lines of one chunk that are too long to be held until their time is known, which usually is at the
 * end of the line. It reads the chunk a second time, ahead of the reader of its events, and keeps nothing but one piece.
 * However many long lines a chunk has, it is read twice.
 */
export class LongLineTimes {
  readonly #open: () => Promise<TextPieces>
  #text: TextPieces | undefined
  #piece: Buffer = EMPTY
  /** Position of the piece in the text. */
  #pieceStart = 0
  #isClosed = false

  constructor(open: () => Promise<TextPieces>) {
    this.#open = open
  }

  /** Returns the time of the line that begins at this position. Each call must name a later line. */
  async timeAt(lineStart: number): Promise<number | undefined> {
    this.#text ??= await this.#open()
    if (this.#isClosed) this.#text.close()
    const line = new EventTimeReader()
    for (;;) {
      const from = Math.max(lineStart - this.#pieceStart, 0)
      if (from < this.#piece.length) {
        const end = this.#piece.indexOf(LINE_FEED, from)
        line.add(this.#piece.subarray(from, end < 0 ? undefined : end))
        if (end >= 0) return line.timeMs
      }
      this.#pieceStart += this.#piece.length
      this.#piece = (await this.#text.read()) ?? EMPTY
      if (this.#piece.length === 0) return line.timeMs
    }
  }

  /** Closes the streams. */
  close(): void {
    this.#isClosed = true
    this.#text?.close()
    this.#piece = EMPTY
  }
}
