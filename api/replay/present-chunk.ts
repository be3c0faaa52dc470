import type { ReplayChunkRow } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import type { ReplayGapRow } from '../../clickhouse/queries/replay/select-replay-gaps.ts'
import type { ReplayGap, StoredChunk } from '../../schemas/http/replay/schemas.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

export function presentChunk(row: ReplayChunkRow): StoredChunk {
  return {
    id: row.id,
    objectKey: row.objectKey,
    windowId: row.windowId,
    segmentId: row.segmentId,
    firstTs: Number(row.firstTs),
    lastTs: Number(row.lastTs),
    firstEventAt: rfc3339FromUnixMs(Number(row.firstEventMs)),
    lastEventAt: rfc3339FromUnixMs(Number(row.lastEventMs)),
    eventCount: row.eventCount,
    hasFullSnapshot: row.hasFullSnapshot,
    activityCount: row.activityCount,
    storedBytes: Number(row.storedBytes),
    decompressedBytes: Number(row.decompressedBytes),
    receivedAt: rfc3339FromUnixMs(Number(row.receivedAtMs)),
  }
}

export function presentGap({ windowId, after, before }: ReplayGapRow): ReplayGap {
  return {
    windowId,
    after: Number(after),
    before: Number(before),
    missingCount: Number(BigInt(before) - BigInt(after) - 1n),
  }
}
