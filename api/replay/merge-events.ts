import type { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type ChunkRef, type EventLine, type OpenChunk, openChunk } from './open-chunk.ts'

/** Limits of `mergeEvents`. */
export interface MergeOptions {
  /** How many chunks may be open at once. A session that was recorded by fewer windows has fewer overlapping chunks. */
  readonly openMax: number
  /** Shares of the open chunks of all streams. The first chunk of a stream needs none, so that every stream continues. */
  readonly openShares: Pick<FairShares, 'take' | 'give'>
  readonly owner: string
  /** Called once if more chunks overlap than may be open. The events of waiting chunks then come late. */
  readonly onCrowded: () => void
  /** Events before this time are left out, in Unix ms. */
  readonly fromMs?: number | undefined
  /** The stream ends before the first event of this time or later, in Unix ms. */
  readonly toMs?: number | undefined
  /** Ends the stream when its reader has left. */
  readonly signal: AbortSignal
}

/** Size at which a batch of lines is yielded. A longer line is yielded in parts. */
const BATCH_BYTES = 64 * 1024
const LINE_FEED = Buffer.from('\n')

/**
 * Merges the events of chunks in the order of time, as JSON lines that are exactly as uploaded. Events of the same time are
 * ordered by window, segment and position.
 *
 * `chunks` must be ordered by the time of their first event. A chunk is opened when the merge reaches that time, and read only
 * as far as needed. It is closed at its end, and also when the reader stops early or a store fails.
 */
export async function* mergeEvents(
  objects: Pick<ObjectStore, 'getStream'>,
  chunks: AsyncIterable<ChunkRef>,
  {
    openMax,
    openShares,
    owner,
    onCrowded,
    signal,
    fromMs = Number.NEGATIVE_INFINITY,
    toMs = Number.POSITIVE_INFINITY,
  }: MergeOptions,
): AsyncGenerator<Buffer> {
  const open = new OpenChunks(openMax, openShares, owner)
  const refs = chunks[Symbol.asyncIterator]()
  const batch = new Batch()
  let isCrowded = false
  // A reader that leaves while a store is silent would not be noticed by the generator.
  const leave = () => open.closeAll()
  signal.addEventListener('abort', leave, { once: true })
  try {
    let upcoming = await nextOf(refs)
    while (!signal.aborted) {
      // Usually all are settled, and this check costs less than an await for each event.
      if (!open.isSettled) await open.settle()
      let first = open.earliest()
      // Chunks are opened one by one, because a new one may begin before those that are open.
      while (
        upcoming &&
        !signal.aborted &&
        (!first?.head || upcoming.firstEventMs <= first.head.timeMs) &&
        open.reserve()
      ) {
        open.add(await openChunk(objects, upcoming))
        // Reads from the new chunk before any other await, because nothing else listens to the errors of its stream.
        await open.settle()
        upcoming = await nextOf(refs)
        first = open.earliest()
      }
      if (!first?.head || first.head.timeMs >= toMs) break
      if (upcoming && !isCrowded && upcoming.firstEventMs <= first.head.timeMs) {
        isCrowded = true
        onCrowded()
      }
      const { pieces, isLong, timeMs } = first.head
      first.take()
      if (timeMs < fromMs) {
        if (isLong) for await (const piece of first.rest()) void piece
        continue
      }
      for (const piece of pieces) if (batch.add(piece)) yield batch.take()
      if (isLong) for await (const piece of first.rest()) if (batch.add(piece)) yield batch.take()
      if (batch.add(LINE_FEED)) yield batch.take()
    }
    if (batch.bytes > 0) yield batch.take()
  } finally {
    signal.removeEventListener('abort', leave)
    open.closeAll()
    await refs.return?.()
  }
}

/** Collects pieces of lines until they are worth sending. */
class Batch {
  bytes = 0
  #pieces: Buffer[] = []

  /** Adds a piece. Returns whether the batch is full. */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece)
    this.bytes += piece.length
    return this.bytes >= BATCH_BYTES
  }

  take(): Buffer {
    const bytes = Buffer.concat(this.#pieces, this.bytes)
    this.#pieces = []
    this.bytes = 0
    return bytes
  }
}

/** The open chunks of one stream. */
class OpenChunks {
  readonly #max: number
  readonly #shares: MergeOptions['openShares']
  readonly #owner: string
  readonly #chunks: OpenChunk[] = []
  /** Chunks for which a share is held: all but the first. */
  #shared = 0

  constructor(max: number, shares: MergeOptions['openShares'], owner: string) {
    this.#max = max
    this.#shares = shares
    this.#owner = owner
  }

  /** Whether the next event of every chunk is known. */
  get isSettled(): boolean {
    return this.#chunks.every(isSettled)
  }

  /** Reserves room for another chunk. Returns false if there is none. */
  reserve(): boolean {
    const count = this.#chunks.length
    if (count >= this.#max) return false
    if (this.#shared >= count) return true
    if (!this.#shares.take(this.#owner, 1)) return false
    this.#shared++
    return true
  }

  add(chunk: OpenChunk): void {
    this.#chunks.push(chunk)
  }

  /** Reads the next event of every open chunk, and closes the chunks that have none left. */
  async settle(): Promise<void> {
    for (const chunk of [...this.#chunks]) {
      if (isSettled(chunk)) continue
      if (!chunk.isReady) await chunk.fill()
      if (chunk.head === undefined) this.#close(chunk)
    }
  }

  earliest(): OpenChunk | undefined {
    let first: OpenChunk | undefined
    for (const chunk of this.#chunks) if (first === undefined || precedes(chunk, first)) first = chunk
    return first
  }

  closeAll(): void {
    for (const chunk of [...this.#chunks]) this.#close(chunk)
    this.#giveBack(0)
  }

  #close(chunk: OpenChunk): void {
    chunk.close()
    const index = this.#chunks.indexOf(chunk)
    if (index >= 0) this.#chunks.splice(index, 1)
    this.#giveBack(Math.max(this.#chunks.length - 1, 0))
  }

  #giveBack(needed: number): void {
    if (this.#shared > needed) this.#shares.give(this.#owner, this.#shared - needed)
    this.#shared = Math.min(this.#shared, needed)
  }
}

async function nextOf(refs: AsyncIterator<ChunkRef>): Promise<ChunkRef | undefined> {
  const { value, done } = await refs.next()
  return done ? undefined : value
}

const isSettled = (chunk: OpenChunk) => chunk.isReady && chunk.head !== undefined

function precedes(a: OpenChunk, b: OpenChunk): boolean {
  const [timeA, timeB] = [timeOf(a.head), timeOf(b.head)]
  if (timeA !== timeB) return timeA < timeB
  if (a.ref.windowId !== b.ref.windowId) return a.ref.windowId < b.ref.windowId
  if (a.ref.segmentNumber !== b.ref.segmentNumber) return a.ref.segmentNumber < b.ref.segmentNumber
  return a.ref.objectKey < b.ref.objectKey
}

const timeOf = (head: EventLine | undefined) => head?.timeMs ?? Number.POSITIVE_INFINITY
