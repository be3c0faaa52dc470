import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { HeldLines } from './held-lines.ts'
import { readEventTime } from './read-event-time.ts'

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
  readonly bytes: Buffer
}

/** How many lines an event may be out of order and still be sorted. Events of rrweb are out of order by one or two. */
const REORDER_LINES = 64
/** Size of the buffered lines at which fewer of them are kept for sorting. */
const REORDER_BYTES = 256 * 1024

/** Opens the object of a chunk. Throws a PermanentError if the object is missing, and what the store throws. */
export async function openChunk(
  objects: Pick<ObjectStore, 'getStream'>,
  ref: ChunkRef,
  held: HeldLines,
): Promise<OpenChunk> {
  const found = await objects.getStream(ref.objectKey)
  if (found === undefined) throw new PermanentError(`the replay chunk ${ref.objectKey} is missing from the store`)
  return new OpenChunk(ref, found.body, held)
}

/**
 * Reads the events of one chunk, sorted by time within REORDER_LINES. After `fill`, `head` is the next event, or undefined at
 * the end. It buffers one piece of the inflater (16 KiB), a line that began in that piece, and the lines kept for sorting.
 */
export class OpenChunk {
  readonly ref: ChunkRef
  readonly #source: Readable
  readonly #inflated: Readable
  readonly #pieces: AsyncIterator<Buffer>
  readonly #held: HeldLines
  /** Lines sorted by time. Those before `#next` are taken. */
  #lines: EventLine[] = []
  #next = 0
  #unsorted = false
  #lineBytes = 0
  /** The beginning of a line whose end is not read yet. */
  #partial: Buffer[] = []
  #partialBytes = 0
  #lastTimeMs: number
  #ended = false

  constructor(ref: ChunkRef, source: Readable, held: HeldLines) {
    this.ref = ref
    this.#source = source
    this.#held = held
    this.#lastTimeMs = ref.firstEventMs
    const gunzip = createGunzip()
    source.once('error', error => gunzip.destroy(error))
    this.#inflated = source.pipe(gunzip)
    this.#pieces = this.#inflated[Symbol.asyncIterator]()
  }

  /** The next event, or undefined at the end. */
  get head(): EventLine | undefined {
    return this.#lines[this.#next]
  }

  /** Whether `head` is the next event without reading further. */
  get isReady(): boolean {
    const waiting = this.#lines.length - this.#next
    return this.#ended || waiting > REORDER_LINES || (waiting > 1 && this.#lineBytes > REORDER_BYTES)
  }

  /** Reads until `head` is the next event, and sorts the buffered lines. */
  async fill(): Promise<void> {
    while (!this.isReady) {
      const piece = await this.#read()
      if (piece) this.#split(piece)
      else this.#end()
    }
    if (this.#unsorted) {
      this.#lines = this.#lines.slice(this.#next).sort((a, b) => a.timeMs - b.timeMs)
      this.#next = 0
      this.#unsorted = false
    }
  }

  /** Takes `head`, so that the event behind it becomes the next one. */
  take(): void {
    const line = this.#lines[this.#next++]
    if (line === undefined) return
    this.#lineBytes -= line.bytes.length
    this.#held.remove(line.bytes.length)
    if (this.#next > 1_024) {
      this.#lines = this.#lines.slice(this.#next)
      this.#next = 0
    }
  }

  /** Closes the streams and frees the buffers. */
  close(): void {
    this.#source.destroy()
    this.#inflated.destroy()
    this.#held.remove(this.#lineBytes + this.#partialBytes)
    this.#lines = []
    this.#partial = []
    this.#next = this.#lineBytes = this.#partialBytes = 0
    this.#ended = true
  }

  async #read(): Promise<Buffer | undefined> {
    try {
      const { value, done } = await this.#pieces.next()
      return done ? undefined : value
    } catch (error) {
      if (error instanceof TransientError || error instanceof PermanentError) throw error
      throw new PermanentError(`the replay chunk ${this.ref.objectKey} cannot be decompressed`, { cause: error })
    }
  }

  #split(piece: Buffer): void {
    this.#held.add(piece.length)
    let start = 0
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, start)) {
      this.#endLine(piece.subarray(start, end))
      this.#held.remove(1)
      start = end + 1
    }
    if (start === piece.length) return
    this.#partial.push(piece.subarray(start))
    this.#partialBytes += piece.length - start
  }

  #endLine(rest: Buffer): void {
    const bytes = this.#partial.length === 0 ? rest : Buffer.concat([...this.#partial, rest])
    this.#partial = []
    this.#partialBytes = 0
    if (isBlank(bytes)) {
      this.#held.remove(bytes.length)
      return
    }
    // An event without a time keeps its position.
    const timeMs = readEventTime(bytes) ?? this.#lastTimeMs
    const previous = this.#lines.at(-1)
    if (previous && this.#lines.length > this.#next && previous.timeMs > timeMs) this.#unsorted = true
    this.#lastTimeMs = timeMs
    this.#lines.push({ timeMs, bytes })
    this.#lineBytes += bytes.length
  }

  #end(): void {
    if (this.#partialBytes > 0) this.#endLine(EMPTY)
    this.#ended = true
  }
}

const LINE_FEED = 0x0a
const EMPTY = Buffer.alloc(0)

function isBlank(bytes: Buffer): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}
