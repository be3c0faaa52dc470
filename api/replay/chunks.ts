import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type ChunkCursor,
  type ChunksPageKey,
  type ReplayChunkRow,
  selectReplayChunks,
} from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import type { ReplayGapRow } from '../../clickhouse/queries/replay/select-replay-gaps.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import type { ReplayGap, StoredChunk } from '../../schemas/http/replay.ts'
import { decodeCursor, encodeCursor } from '../http/cursor.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import type { Outcome } from '../http/outcome.ts'
import type { ChunkRef } from './open-chunk.ts'

/** Rows of one page. Their ids and keys may have some KB each. */
const PAGE_CHUNKS = 100

/** Lists chunks of a session in reading order. The next page is read when the page before it is used up. */
export async function* listChunks(
  client: ClickHouseClient,
  key: SessionKey & Pick<ChunksPageKey, 'windowId' | 'fromMs' | 'toMs'>,
  signalOfQuery: () => AbortSignal,
): AsyncGenerator<ChunkRef> {
  let after: ChunkCursor | undefined
  do {
    const page = { ...key, limit: PAGE_CHUNKS, after }
    const rows = await selectReplayChunks(client, page, signalOfQuery())
    for (const row of rows) {
      yield {
        objectKey: row.objectKey,
        windowId: row.windowId,
        segmentId: row.segmentId,
        segmentNumber: Number(row.segmentNumber),
        firstEventMs: Number(row.firstEventMs),
      }
    }
    after = rows.length === PAGE_CHUNKS ? rows.at(-1) : undefined
  } while (after)
}

const integerText = (min: bigint, max: bigint) =>
  z
    .string()
    .regex(/^-?\d{1,20}$/)
    .refine(text => BigInt(text) >= min && BigInt(text) <= max)
const int64 = integerText(-(2n ** 63n), 2n ** 63n - 1n)
const uint64 = integerText(0n, 2n ** 64n - 1n)
const cursorSchema = z
  .tuple([int64, uint64, int64, z.string().regex(/^chk_[0-9a-f]{32}$/)])
  .transform(([firstEventMs, windowRank, segmentNumber, id]) => ({ firstEventMs, windowRank, segmentNumber, id }))

/** Encodes the cursor of the page behind a chunk, in reading order. */
export function encodeChunkCursor({ firstEventMs, windowRank, segmentNumber, id }: ChunkCursor): string {
  return encodeCursor([firstEventMs, windowRank, segmentNumber, id])
}

/** Decodes a cursor of `encodeChunkCursor`. */
export function decodeChunkCursor(text: string | undefined): Outcome<ChunkCursor | undefined> {
  return decodeCursor(cursorSchema, text)
}

/** Returns a stored chunk as responses show it. */
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

/** Returns a gap between two received segments as responses show it. */
export function presentGap({ windowId, after, before }: ReplayGapRow): ReplayGap {
  return {
    windowId,
    after: Number(after),
    before: Number(before),
    missingCount: Number(BigInt(before) - BigInt(after) - 1n),
  }
}
