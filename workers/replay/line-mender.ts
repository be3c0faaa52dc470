import { inflateSync } from 'node:zlib'
import { CHUNK_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { JsonTokenizer } from '../../shared/json/json-tokenizer.ts'
import type { RefusalLabel } from '../../shared/runtime/reason.ts'
import { CHUNK_LIMITS } from './json-lines.ts'

/** Bytes of a packed line. Its text is a string in the heap of a thread, with up to two bytes a character. */
const PACKED_LINE_BYTES = 8 * MIB
/** A longer event is inflated again, into a buffer of its own. */
const SHORT_EVENT_BYTES = 256 * KIB
/** Short lines are passed on together, up to these bytes. */
const PIECE_BYTES = 128 * KIB

/**
 * Makes JSON lines of events from the lines of a chunk as browsers send them (docs/api/sessions.md#replay):
 *
 *   - the text of `pack` of `@rrweb/packer`, as a JSON string, becomes the event that it contains
 *   - a last line that ends within its event is left out: browsers cut chunks when a page is unloaded
 *
 * Passes on every other line as it is, so that a fault has the number of its line as sent.
 */
export class LineMender {
  /** Whether the last line is left out. */
  isTruncated = false
  /** The limit that the chunk has passed. The lines end there. */
  brokenLimit: Extract<RefusalLabel, 'too_large_decompressed' | 'line_too_long'> | undefined
  /** The line that is being read. */
  #line: Buffer[] = []
  #lineBytes = 0
  /** The last line with an event, and the blank lines after it. */
  #held: Buffer[] = []
  #heldBlankBytes = 0
  /** Pieces to pass on, and short lines that are not in a piece yet. */
  #pieces: Buffer[] = []
  #short: Buffer[] = []
  #shortBytes = 0

  /** Returns the lines of a text, in pieces of any size. */
  async *mend(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let bytes = 0
    for await (const piece of text) {
      bytes += piece.length
      if (bytes > CHUNK_DECOMPRESSED_BYTES) this.brokenLimit = 'too_large_decompressed'
      for (let at = 0; at < piece.length && this.brokenLimit === undefined; ) {
        at = this.#read(piece, at)
        if (this.#pieces.length > 0) yield* this.#pieces.splice(0)
      }
      if (this.brokenLimit !== undefined) return
    }
    this.#endLine()
    this.isTruncated = this.#held[0] !== undefined && isStartOfLine(this.#held[0])
    if (!this.isTruncated) this.#release()
    this.#joinShort()
    yield* this.#pieces
  }

  /** Reads up to the end of a line or of the piece, and returns the position behind it. */
  #read(piece: Buffer, at: number): number {
    const lineFeed = piece.indexOf(LINE_FEED, at)
    const end = lineFeed < 0 ? piece.length : lineFeed + 1
    this.#line.push(piece.subarray(at, end))
    this.#lineBytes += end - at
    if (this.#lineBytes > CHUNK_LIMITS.lineBytes + 1) this.brokenLimit = 'line_too_long'
    else if (lineFeed >= 0) this.#endLine()
    return end
  }

  #endLine(): void {
    const [first] = this.#line
    if (first === undefined) return
    const line = this.#line.length === 1 ? first : Buffer.concat(this.#line, this.#lineBytes)
    this.#line = []
    this.#lineBytes = 0
    const start = line.find(byte => !isBlank(byte))
    if (start === undefined) this.#addBlank(line)
    else {
      this.#release()
      this.#held = start === QUOTE ? this.#unpack(line) : [line]
    }
  }

  /** Keeps a blank line behind the event before it. More blanks than a chunk may have are not held. */
  #addBlank(line: Buffer): void {
    this.#held.push(line)
    this.#heldBlankBytes += line.length
    if (this.#heldBlankBytes > CHUNK_LIMITS.blankBytes) this.#release()
  }

  /** Returns the event of a packed line, with the end of the line. A line without one is returned as it is. */
  #unpack(line: Buffer): Buffer[] {
    if (line.length > PACKED_LINE_BYTES) this.brokenLimit = 'line_too_long'
    if (this.brokenLimit !== undefined) return [line]
    try {
      const text: string = JSON.parse(line.toString())
      // `unpack` of the packer also takes an event that is a text and not compressed.
      const event = text.startsWith('{') ? Buffer.from(text) : inflateText(text)
      // JSON has line feeds between its values only.
      for (let at = event.indexOf(LINE_FEED); at >= 0; at = event.indexOf(LINE_FEED, at)) event[at] = SPACE
      return line.at(-1) === LINE_FEED ? [event, Buffer.of(LINE_FEED)] : [event]
    } catch (error) {
      if (isTooLarge(error)) this.brokenLimit = 'line_too_long'
      return [line]
    }
  }

  /** Passes on what is held. A long line is not copied. */
  #release(): void {
    for (const line of this.#held) {
      if (line.length >= PIECE_BYTES) {
        this.#joinShort()
        this.#pieces.push(line)
        continue
      }
      this.#short.push(line)
      this.#shortBytes += line.length
      if (this.#shortBytes >= PIECE_BYTES) this.#joinShort()
    }
    this.#held = []
    this.#heldBlankBytes = 0
  }

  #joinShort(): void {
    if (this.#shortBytes > 0) this.#pieces.push(Buffer.concat(this.#short, this.#shortBytes))
    this.#short = []
    this.#shortBytes = 0
  }
}

/** Inflates the zlib stream whose bytes are the characters of this text. */
function inflateText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  try {
    return inflateSync(bytes, { maxOutputLength: SHORT_EVENT_BYTES })
  } catch (error) {
    if (!isTooLarge(error)) throw error
    // In one buffer: zlib would join many, and need twice the memory.
    return inflateSync(bytes, { maxOutputLength: CHUNK_LIMITS.lineBytes, chunkSize: CHUNK_LIMITS.lineBytes + 1 })
  }
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_BUFFER_TOO_LARGE'
}

/** Returns whether a line is the beginning of an event, packed or not, without its end. */
function isStartOfLine(line: Buffer): boolean {
  const value = new JsonTokenizer({ maxDepth: CHUNK_LIMITS.depth, reportDepth: 0 })
  const start = line.find(byte => !isBlank(byte))
  const isEvent = start === OPEN_BRACE || start === QUOTE
  return isEvent && value.add(line.at(-1) === LINE_FEED ? line.subarray(0, -1) : line) && !value.end()
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === 0x0d || byte === 0x09
}

const LINE_FEED = 0x0a
const SPACE = 0x20
const QUOTE = 0x22
const OPEN_BRACE = 0x7b
