import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from '../sessions/session-key.ts'

/** Two segments of a window between which others are missing. 64-bit numbers are decimal text. */
export interface ReplayGapRow {
  readonly windowId: string
  readonly after: string
  readonly before: string
}

/** Returns the gaps in the segment numbers of each window. Segments whose ids are not numbers are ignored. */
export function selectReplayGaps(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<ReplayGapRow[]> {
  return selectRows<ReplayGapRow>(client, {
    query: `
      SELECT window_id AS windowId, before_it AS after, segment_number AS before
      FROM (
        SELECT surface_id, window_id, segment_number,
               lagInFrame(segment_number, 1, segment_number) OVER (
                 PARTITION BY surface_id, window_id ORDER BY segment_number
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS before_it
        FROM replay_chunks WHERE ${OF_SESSION} AND segment_number >= 0)
      WHERE segment_number - before_it > 1
      ORDER BY windowId, before LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}

/** Returns the windows whose first chunk in reading order has no full snapshot. Their changes cannot be played. */
export async function selectReplayUnseededWindows(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ windowId: string }>(client, {
    query: `
      SELECT DISTINCT window_id AS windowId
      FROM (
        SELECT window_id, argMin(has_full_snapshot, (first_event_ms, segment_number, segment_id)) AS isSeeded
        FROM replay_chunks WHERE ${OF_SESSION} GROUP BY surface_id, window_id)
      WHERE NOT isSeeded ORDER BY windowId LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
  return rows.map(row => row.windowId)
}
