import type { ObjectStore } from '../../shared/object-store/types.ts'
import { HeldLines } from './held-lines.ts'
import { type ChunkRef, type EventLine, type OpenChunk, openChunk } from './open-chunk.ts'

/** Limits of `mergeEvents`. */
export interface MergeOptions {
  /** How many chunks may be open at once. A session that was recorded by fewer windows has fewer overlapping chunks. */
  readonly openMax: number
  /** Limit of the buffered events of all open chunks. */
  readonly heldLimitBytes: number
  /** Called once if more chunks overlap than may be open. The events of waiting chunks then come late. */
  readonly onCrowded: () => void
}

/** Size at which a batch of lines is yielded. */
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
  { openMax, heldLimitBytes, onCrowded }: MergeOptions,
): AsyncGenerator<Buffer> {
  const held = new HeldLines(heldLimitBytes)
  const open: OpenChunk[] = []
  const refs = chunks[Symbol.asyncIterator]()
  let upcoming = await nextOf(refs)
  let batch: Buffer[] = []
  let batchBytes = 0
  let isCrowded = false
  try {
    for (;;) {
      // Usually all are settled, and this check costs less than an await for each event.
      if (!open.every(isSettled)) await settle(open)
      let first = earliest(open)
      // Chunks are opened one by one, because a new one may begin before those that are open.
      while (upcoming && open.length < openMax && (!first?.head || upcoming.firstEventMs <= first.head.timeMs)) {
        open.push(await openChunk(objects, upcoming, held))
        // Reads from the new chunk before any other await, because nothing else listens to the errors of its stream.
        await settle(open)
        upcoming = await nextOf(refs)
        first = earliest(open)
      }
      if (!first?.head) break
      if (upcoming && !isCrowded && upcoming.firstEventMs <= first.head.timeMs) {
        isCrowded = true
        onCrowded()
      }
      const { bytes } = first.head
      first.take()
      batch.push(bytes, LINE_FEED)
      batchBytes += bytes.length + 1
      if (batchBytes >= BATCH_BYTES) {
        yield Buffer.concat(batch, batchBytes)
        batch = []
        batchBytes = 0
      }
    }
    if (batchBytes > 0) yield Buffer.concat(batch, batchBytes)
  } finally {
    for (const chunk of open) chunk.close()
    await refs.return?.()
  }
}

async function nextOf(refs: AsyncIterator<ChunkRef>): Promise<ChunkRef | undefined> {
  const { value, done } = await refs.next()
  return done ? undefined : value
}

const isSettled = (chunk: OpenChunk) => chunk.isReady && chunk.head !== undefined

/** Reads the next event of every open chunk, and closes the chunks that have none left. */
async function settle(open: OpenChunk[]): Promise<void> {
  for (let i = open.length - 1; i >= 0; i--) {
    const chunk = open[i]
    if (chunk === undefined || isSettled(chunk)) continue
    if (!chunk.isReady) await chunk.fill()
    if (chunk.head) continue
    chunk.close()
    open.splice(i, 1)
  }
}

function earliest(open: readonly OpenChunk[]): OpenChunk | undefined {
  let first: OpenChunk | undefined
  for (const chunk of open) if (first === undefined || precedes(chunk, first)) first = chunk
  return first
}

function precedes(a: OpenChunk, b: OpenChunk): boolean {
  const [timeA, timeB] = [timeOf(a.head), timeOf(b.head)]
  if (timeA !== timeB) return timeA < timeB
  if (a.ref.windowId !== b.ref.windowId) return a.ref.windowId < b.ref.windowId
  if (a.ref.segmentNumber !== b.ref.segmentNumber) return a.ref.segmentNumber < b.ref.segmentNumber
  return a.ref.objectKey < b.ref.objectKey
}

const timeOf = (head: EventLine | undefined) => head?.timeMs ?? Number.POSITIVE_INFINITY
