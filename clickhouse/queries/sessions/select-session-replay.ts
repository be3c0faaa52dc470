import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** Totals of the replay chunks of a session. 64-bit numbers are decimal text. */
export interface SessionReplayRow {
  readonly chunkCount: string
  readonly windowCount: string
  readonly eventCount: string
  readonly storedBytes: string
  readonly decompressedBytes: string
  readonly firstEventMs: string
  readonly lastEventMs: string
  readonly firstReceivedMs: string
  readonly lastReceivedMs: string
}

/** Returns the totals of the replay chunks of a session, or undefined if it has none. */
export async function selectSessionReplay(
  client: ClickHouseClient,
  key: SessionKey,
  signal: AbortSignal,
): Promise<SessionReplayRow | undefined> {
  const rows = await selectRows<SessionReplayRow>(client, {
    query: `
      SELECT count() AS chunkCount, uniqExact(surface_id, window_id) AS windowCount, sum(event_count) AS eventCount,
             sum(stored_bytes) AS storedBytes, sum(decompressed_bytes) AS decompressedBytes,
             min(first_event_ms) AS firstEventMs, max(last_event_ms) AS lastEventMs,
             toUnixTimestamp64Milli(min(received_at)) AS firstReceivedMs,
             toUnixTimestamp64Milli(max(received_at)) AS lastReceivedMs
      FROM replay_chunks WHERE ${OF_SESSION} HAVING chunkCount > 0`,
    params: { ...key },
    signal,
  })
  return rows[0]
}
