import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { OF_SESSION, type SessionKey } from '../session-key.ts'

/** Days (UTC) on which data of a session was received, such as `2026-11-21`. */
export interface SessionDays {
  readonly firstDay: string
  readonly lastDay: string
}

const REQUESTS = ['session_identities', 'session_heartbeats', 'replay_chunks'].map(
  table => `
    SELECT toDate(min(received_at)) AS first, toDate(max(received_at)) AS last, 1 AS isKnown
    FROM ${table} WHERE ${OF_SESSION} HAVING count() > 0`,
)
const TRACES = `
    SELECT min(day) AS first, max(day) AS last, 1 AS isKnown FROM session_traces WHERE ${OF_SESSION} HAVING count() > 0`
// Findings alone are no session, as in GET /v3/sessions/{sessionId}.
const FINDINGS = `
    SELECT toDate(min(received_at)) AS first, toDate(max(received_at)) AS last, 0 AS isKnown
    FROM exceptions WHERE ${OF_SESSION} HAVING count() > 0`

/** Returns the days of a session, or undefined if nothing of it is retained in this workspace. */
export async function selectSessionDays(
  client: ClickHouseClient,
  { workspaceId, sessionId }: SessionKey,
  signal: AbortSignal,
): Promise<SessionDays | undefined> {
  const [days] = await selectRows<SessionDays>(client, {
    query: `
      SELECT min(first) AS firstDay, max(last) AS lastDay
      FROM (${[...REQUESTS, TRACES, FINDINGS].join(' UNION ALL ')}) HAVING max(isKnown) = 1`,
    params: { workspaceId, sessionId },
    signal,
  })
  return days
}
