import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from '../sessions/session-key.ts'

/** A row of `replay_chunks`. 64-bit numbers are decimal text. */
export interface ReplayChunkRow {
  readonly id: string
  readonly objectKey: string
  readonly windowId: string
  /** A hash of `windowId`, which may be too long for a cursor. */
  readonly windowRank: string
  readonly segmentId: string
  /** -1 if the segment id is not a number. */
  readonly segmentNumber: string
  readonly firstTs: string
  readonly lastTs: string
  readonly firstEventMs: string
  readonly lastEventMs: string
  readonly eventCount: number
  readonly hasFullSnapshot: boolean
  readonly activityCount: number
  readonly storedBytes: string
  readonly decompressedBytes: string
  readonly receivedAtMs: string
}

/** Position of a chunk in the reading order: the time of its first event, then window and segment. */
export type ChunkCursor = Pick<ReplayChunkRow, 'firstEventMs' | 'windowRank' | 'segmentNumber' | 'id'>

/** Selects a page of the chunks of a session. */
export interface ChunksPageKey extends SessionKey {
  /** Selects one window; all windows if left out. */
  readonly windowId?: string | undefined
  /** Selects chunks whose last event is at this time or later, in Unix ms. */
  readonly fromMs?: number | undefined
  /** Selects chunks whose first event is before this time, in Unix ms. */
  readonly toMs?: number | undefined
  readonly limit: number
  /** The last chunk of the previous page. */
  readonly after: ChunkCursor | undefined
}

/** Returns a page of the chunks of a session in reading order. */
export function selectReplayChunks(
  client: ClickHouseClient,
  { workspaceId, sessionId, windowId, fromMs, toMs, limit, after }: ChunksPageKey,
  signal: AbortSignal,
): Promise<ReplayChunkRow[]> {
  const isAfter = `(first_event_ms, windowRank, segment_number, id)
    > ({firstEventMs: Int64}, {windowRank: UInt64}, {segmentNumber: Int64}, {id: String})`
  const cursor = after && {
    firstEventMs: after.firstEventMs,
    windowRank: after.windowRank,
    segmentNumber: after.segmentNumber,
    id: after.id,
  }
  return selectRows<ReplayChunkRow>(client, {
    query: `
      SELECT concat('chk_', substring(lower(hex(SHA256(object_key))), 1, 32)) AS id, object_key AS objectKey,
             window_id AS windowId, sipHash64(window_id) AS windowRank, segment_id AS segmentId, segment_number AS segmentNumber,
             first_ts_ms AS firstTs, last_ts_ms AS lastTs, first_event_ms AS firstEventMs,
             last_event_ms AS lastEventMs, event_count AS eventCount, has_full_snapshot AS hasFullSnapshot,
             activity_count AS activityCount, stored_bytes AS storedBytes, decompressed_bytes AS decompressedBytes,
             toUnixTimestamp64Milli(received_at) AS receivedAtMs
      FROM replay_chunks
      WHERE ${OF_SESSION}
        ${after ? `AND first_event_ms >= {firstEventMs: Int64} AND ${isAfter}` : ''}
        ${windowId === undefined ? '' : 'AND window_id = {windowId: String}'}
        ${fromMs === undefined ? '' : 'AND last_event_ms >= {fromMs: Int64}'}
        ${toMs === undefined ? '' : 'AND first_event_ms < {toMs: Int64}'}
      ORDER BY first_event_ms, windowRank, segment_number, id LIMIT {limit: UInt32}`,
    params: {
      workspaceId,
      sessionId,
      limit,
      ...cursor,
      ...(windowId !== undefined && { windowId }),
      ...(fromMs !== undefined && { fromMs }),
      ...(toMs !== undefined && { toMs }),
    },
    signal,
  })
}
