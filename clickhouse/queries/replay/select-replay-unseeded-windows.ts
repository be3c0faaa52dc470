import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from '../sessions/session-key.ts'

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
