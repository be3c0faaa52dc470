import { ReplayChunksTable } from '../../clickhouse/tables/replay-chunks-table.ts'
import { replayChunkSchema } from '../../schemas/queues/jobs.ts'
import { createJsonRowsBatch } from '../sink/json-rows-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'

/** Creates rows of `replay_chunks` from the stored chunks in the queue `replay-chunks`. */
export function createReplayChunksBatch(): RowBatch {
  const table = new ReplayChunksTable()
  return createJsonRowsBatch([table.buffer], (frame, value) => {
    const { firstTs, lastTs, firstEventMs, lastEventMs, sha256, sentSha256, ...chunk } = replayChunkSchema.parse(value)
    const { workspaceId, surfaceId, receivedAtMs } = frame
    table.append({
      ...chunk,
      workspaceId,
      surfaceId,
      receivedAtMs,
      segmentNumber: segmentNumber(chunk.segmentId),
      activityCount: Math.min(chunk.activityCount, 0xffff_ffff),
      // Rounding away a fraction of a millisecond must not leave an event outside its chunk.
      firstTsMs: Math.floor(firstTs),
      lastTsMs: Math.ceil(lastTs),
      firstEventMs: Math.floor(firstEventMs),
      lastEventMs: Math.ceil(lastEventMs),
      sha256: Buffer.from(sha256, 'hex'),
      sentSha256: Buffer.from(sentSha256, 'hex'),
    })
  })
}

/** Returns -1 for a text that is not a number, and for a number beyond the safe integers. */
function segmentNumber(segmentId: string): number {
  if (!/^(0|[1-9]\d{0,15})$/.test(segmentId)) return -1
  const value = Number(segmentId)
  return Number.isSafeInteger(value) ? value : -1
}
