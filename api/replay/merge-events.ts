import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import { HeldLines } from './held-lines.ts'
import { type ChunkRef, type EventLine, type OpenChunk, openChunk } from './open-chunk.ts'

export interface MergeOptions {
  /** Chunks that are open at once; more than overlap in any session that was recorded by fewer windows. */
  readonly openMax: number
  /** What is held of the events of all of them. */
  readonly heldLimitBytes: number
  /** Called once when more chunks overlap than may be open: the events of those that wait come late. */
  readonly onCrowded: () => void
}

/** Handed on at once; a line that is larger comes alone. */
const BATCH_BYTES = 64 * 1024
const LINE_FEED = Buffer.from('\n')

/**
 * The events of chunks as JSON lines in the order of time, each line as it was uploaded; at the same time, by window,
 * segment and position. `chunks` come by the time of their first event, and one is opened when the merge has come to that
 * time, read as far as it is needed, and closed when it is read to its end, or when the reading ends in whatever way.
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
      // Only what was taken from can have come to its end; asking is dearer than an event is.
      if (!open.every(isSettled)) await settle(open)
      let first = earliest(open)
      // Opened one by one: what is opened may begin earlier than what is open.
      while (upcoming && open.length < openMax && (!first?.head || upcoming.firstEventMs <= first.head.timeMs)) {
        open.push(await openChunk(objects, upcoming, held))
        // Before anything else is waited for: its stream has nobody yet to hear of its faults.
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

/** Every open chunk comes to know its next event; those that have none are closed. */
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
