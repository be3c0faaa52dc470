import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A session, and a surface that has sent data of it. */
interface SessionSurfaceRow {
  readonly sessionId: string
  readonly surfaceId: string
}

const TABLES = ['session_identities', 'session_heartbeats', 'replay_chunks']

/** Returns the surfaces that have sent identities, heartbeats or replay chunks of these sessions. */
export function selectSessionSurfaces(
  client: ClickHouseClient,
  workspaceId: string,
  sessionIds: readonly string[],
  signal: AbortSignal,
): Promise<SessionSurfaceRow[]> {
  const selects = TABLES.map(
    table => `SELECT session_id AS sessionId, surface_id AS surfaceId FROM ${table}
      WHERE workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}`,
  )
  return selectRows<SessionSurfaceRow>(client, {
    query: `SELECT DISTINCT sessionId, surfaceId FROM (${selects.join(' UNION ALL ')}) ORDER BY ALL`,
    params: { workspaceId, sessionIds },
    signal,
  })
}
