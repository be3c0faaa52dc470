import type { ObjectStore } from '../../shared/object-store/types.ts'
import { openInflated } from './inflated-object.ts'
import { EventTimeReader, readEventTime } from './read-event-time.ts'

/** A stored chunk, and where it belongs in the session. */
export interface ChunkRef {
  readonly objectKey: string
  readonly windowId: string
  readonly segmentId: string
  readonly segmentNumber: number
  readonly firstEventMs: number
}

/** One event as a JSON line. */
export interface EventLine {
  readonly timeMs: number
  /** The line without its line feed. */
  readonly pieces: readonly Buffer[]
  /** Whether `pieces` is only the beginning of the line. `OpenChunk.rest` reads the rest. */
  readonly isLong: boolean
}

interface HeldLine extends EventLine {
  /** Bytes of memory of the line, with the blank lines behind it, whose memory may be one with that of the line. */
  bytes: number
}

/** How many lines an event may be out of order and still be sorted. Events of rrweb are out of order by one or two. */
const REORDER_LINES = 64
/** Size of the held lines at which fewer of them are kept for sorting. */
const REORDER_BYTES = 128 * 1024
/** Size from which a line is not held, but passed on while it is read. No later line is sorted before it. */
const LONG_LINE_BYTES = 128 * 1024

/** Opens the object of a chunk. Throws a MissingChunk if there is none, and what the store throws. */
export async function openChunk(objects: Pick<ObjectStore, 'getStream'>, ref: ChunkRef): Promise<OpenChunk> {
  return new OpenChunk(ref, await openInflated(objects, ref.objectKey), () => openInflated(objects, ref.objectKey))
}

/**
 * Reads the events of one chunk, sorted by time within REORDER_LINES. After `fill`, `head` is the next event, or undefined
 * at the end. However long its lines are, it holds at most REORDER_BYTES and LONG_LINE_BYTES of them, in pieces of 16 KiB.
 */
export class OpenChunk {
  readonly ref: ChunkRef
  readonly #text: TextPieces
  readonly #longLineTimes: LongLineTimes
  /** The lines to take, sorted by time. */
  #lines: HeldLine[] = []
  #lineBytes = 0
  #isUnsorted = false
  /** Whether one of the lines is long. Nothing behind it can be read before its rest. */
  #hasLongLine = false
  /** The piece that is being cut into lines, and the position in it. */
  #piece: Buffer = EMPTY
  #at = 0
  /** Position of the piece in the text. */
  #pieceStart = 0
  /** The beginning of a line whose end is not read yet. */
  #partial: Buffer[] = []
  #partialBytes = 0
  #lastTimeMs: number
  #isEnded = false

  constructor(ref: ChunkRef, text: TextPieces, openAgain: () => Promise<TextPieces>) {
    this.ref = ref
    this.#text = text
    this.#longLineTimes = new LongLineTimes(openAgain)
    this.#lastTimeMs = ref.firstEventMs
  }

  /** The next event, or undefined at the end. */
  get head(): EventLine | undefined {
    return this.#lines[0]
  }

  /** Whether `head` is the next event without reading further. */
  get isReady(): boolean {
    const waiting = this.#lines.length
    const isEnough = waiting > REORDER_LINES || (waiting > 1 && this.#lineBytes > REORDER_BYTES)
    return this.#isEnded || this.#hasLongLine || isEnough
  }

  /** Reads until `head` is the next event, and sorts the held lines. */
  async fill(): Promise<void> {
    while (!this.isReady) {
      if (this.#partialBytes > LONG_LINE_BYTES && !this.#dropBlankPart()) await this.#beginLongLine()
      else if (this.#at < this.#piece.length || (await this.#readPiece())) this.#cutLine()
      else this.#end()
    }
    if (this.#isUnsorted) this.#lines.sort((a, b) => a.timeMs - b.timeMs)
    this.#isUnsorted = false
  }

  /** Takes `head`, so that the event behind it becomes the next one. The rest of a long line must be read before that. */
  take(): void {
    const line = this.#lines.shift()
    if (line !== undefined) this.#lineBytes -= line.bytes
  }

  /** Reads the rest of the long line that was taken. */
  async *rest(): AsyncGenerator<Buffer> {
    while (this.#at < this.#piece.length || (await this.#readPiece())) {
      const end = this.#piece.indexOf(LINE_FEED, this.#at)
      yield this.#piece.subarray(this.#at, end < 0 ? undefined : end)
      this.#at = end < 0 ? this.#piece.length : end + 1
      if (end >= 0) break
    }
    this.#hasLongLine = false
  }

  /** Closes the streams and frees the buffers. */
  close(): void {
    this.#text.close()
    this.#longLineTimes.close()
    this.#lines = []
    this.#partial = []
    this.#piece = EMPTY
    this.#at = this.#lineBytes = this.#partialBytes = 0
    this.#isEnded = true
  }

  /** Reads the next piece. Returns false at the end. */
  async #readPiece(): Promise<boolean> {
    const piece = await this.#text.read()
    if (this.#isEnded) return false
    this.#pieceStart += this.#piece.length
    this.#piece = piece ?? EMPTY
    this.#at = 0
    return piece !== undefined
  }

  /** Cuts one line out of the piece, or the beginning of one. Thousands of lines may be in a piece. */
  #cutLine(): void {
    const end = this.#piece.indexOf(LINE_FEED, this.#at)
    const part = this.#piece.subarray(this.#at, end < 0 ? undefined : end)
    this.#at = end < 0 ? this.#piece.length : end + 1
    if (part.length > 0) this.#partial.push(part)
    this.#partialBytes += part.length
    if (end >= 0) this.#endLine()
  }

  #endLine(): void {
    const pieces = this.#partial
    const bytes = this.#partialBytes
    this.#partial = []
    this.#partialBytes = 0
    if (!pieces.every(isBlank)) {
      // An event without a time keeps its position.
      this.#hold({ timeMs: readEventTime(pieces) ?? this.#lastTimeMs, pieces, isLong: false, bytes })
      return
    }
    const last = this.#lines.at(-1)
    if (last === undefined) return
    last.bytes += bytes
    this.#lineBytes += bytes
  }

  /** Drops the beginning of a line if it is only white space. Returns whether it was. */
  #dropBlankPart(): boolean {
    if (!this.#partial.every(isBlank)) return false
    this.#partial = []
    this.#partialBytes = 0
    return true
  }

  async #beginLongLine(): Promise<void> {
    const pieces = this.#partial
    const bytes = this.#partialBytes
    const timeMs = await this.#longLineTimes.timeAt(this.#pieceStart + this.#at - bytes)
    if (this.#isEnded) return
    this.#partial = []
    this.#partialBytes = 0
    this.#hasLongLine = true
    this.#hold({ timeMs: timeMs ?? this.#lastTimeMs, pieces, isLong: true, bytes })
  }

  #hold(line: HeldLine): void {
    const previous = this.#lines.at(-1)
    if (previous !== undefined && previous.timeMs > line.timeMs) this.#isUnsorted = true
    this.#lastTimeMs = line.timeMs
    this.#lines.push(line)
    this.#lineBytes += line.bytes
  }

  #end(): void {
    if (this.#partialBytes > 0) this.#endLine()
    this.#isEnded = true
  }
}

const LINE_FEED = 0x0a
const EMPTY = Buffer.alloc(0)

function isBlank(bytes: Buffer): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** The text of a chunk, from its beginning. */
interface TextPieces {
  /** Returns the next piece, or undefined at the end. */
  read(): Promise<Buffer | undefined>
  close(): void
}

/**
 * Reads the times of the lines of one chunk that are too long to be held until their time is known, which usually is at the
 * end of the line. It reads the chunk a second time, ahead of the reader of its events, and keeps nothing but one piece.
 * However many long lines a chunk has, it is read twice.
 */
class LongLineTimes {
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
