import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Identifies a user of a workspace. */
interface IdentifierKey {
  readonly workspaceId: string
  readonly identifier: string
  /** Source of identities; all sources if left out. */
  readonly sourceType?: string | undefined
}

/** Returns the sessions that were ever identified with this identifier. Undefined if they are too many. */
export async function selectIdentifiedSessions(
  client: ClickHouseClient,
  { workspaceId, identifier, sourceType }: IdentifierKey,
  max: { readonly sessions: number; readonly idBytes: number },
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const query = `
    SELECT DISTINCT session_id AS sessionId FROM session_identities
    WHERE workspace_id = {workspaceId: String} AND identifier = {identifier: String}
      ${sourceType === undefined ? '' : 'AND source_type = {sourceType: String}'}
    LIMIT {limit: UInt32}`
  const params = { workspaceId, identifier, sourceType, limit: max.sessions + 1 }
  // Measured first, because the ids may be long.
  const measured = `SELECT count() AS sessions, sum(length(sessionId)) AS idBytes FROM (${query})`
  const [size] = await selectRows<{ sessions: string; idBytes: string }>(client, { query: measured, params, signal })
  if (Number(size?.sessions) > max.sessions || Number(size?.idBytes) > max.idBytes) return undefined
  const rows = await selectRows<{ sessionId: string }>(client, { query, params, signal })
  return rows.map(({ sessionId }) => sessionId)
}

/** Returns up to `limit` different identifiers and e-mail addresses of sessions, and names of several words: others are words. */
export async function selectSessionNames(
  client: ClickHouseClient,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ text: string }>(client, {
    query: `
      SELECT DISTINCT arrayJoin([identifier, email, if(match(name, '\\\\S\\\\s+\\\\S'), name, '')]) AS text FROM session_identities
      WHERE workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)} AND text != ''
      LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
  return rows.map(({ text }) => text)
}

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

/** Identifies a dead letter of a session. */
interface SessionLetterRow {
  readonly receivedAtMs: number
  readonly jobId: string
  readonly index: number
}

/** Returns up to `limit` dead letters whose request names one of these sessions, behind those that are skipped. */
export async function selectSessionLetters(
  client: ClickHouseClient,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  { limit, offset }: { readonly limit: number; readonly offset: number },
  signal: AbortSignal,
): Promise<SessionLetterRow[]> {
  const rows = await selectRows<{ receivedAtMs: string; jobId: string; index: number }>(client, {
    query: `
      SELECT DISTINCT toUnixTimestamp64Milli(received_at) AS receivedAtMs, job_id AS jobId, job_index AS index
      FROM dead_letters
      WHERE workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}
      ORDER BY receivedAtMs, jobId, index LIMIT {limit: UInt32} OFFSET {offset: UInt32}`,
    params: { ...key, limit, offset },
    signal,
  })
  return rows.map(row => ({ ...row, receivedAtMs: Number(row.receivedAtMs) }))
}
