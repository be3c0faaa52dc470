import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** A finding that occurred in a session. 64-bit numbers are decimal text. */
export interface SessionFindingRow {
  readonly id: string
  readonly occurrenceCount: string
  readonly lastSeenUnixNano: string
  /** Number of findings of the session. */
  readonly total: string
}

/** Returns the findings that occurred in a session, the last seen first. */
export function selectSessionFindings(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<SessionFindingRow[]> {
  return selectRows<SessionFindingRow>(client, {
    query: `
      SELECT finding_id AS id, sum(occurrence_count) AS occurrenceCount, max(last_seen_unix_nano) AS lastSeenUnixNano,
             count() OVER () AS total
      FROM session_findings WHERE ${OF_SESSION}
      GROUP BY finding_id ORDER BY lastSeenUnixNano DESC, id LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}
