import type { ClickHouseClient } from '../../client.ts'
import { classifyClickHouseError } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** Where rows carry a session's id; those that views fill come after those they are filled from. */
export const SESSION_TABLES = [
  { table: 'spans', hasSurface: true },
  { table: 'logs', hasSurface: true },
  { table: 'exceptions', hasSurface: true },
  { table: 'session_traces', hasSurface: false },
  { table: 'session_findings', hasSurface: false },
  { table: 'session_identities', hasSurface: true },
  { table: 'session_heartbeats', hasSurface: true },
  { table: 'replay_chunks', hasSurface: true },
] as const
export type SessionTable = (typeof SESSION_TABLES)[number]

export interface SessionRows {
  readonly rows: number
  readonly surfaceIds: readonly string[]
}

/** How many rows a table has of a session, and of which surfaces they are. */
export async function countSessionRows(
  client: ClickHouseClient,
  { table, hasSurface }: SessionTable,
  { workspaceId, sessionId }: SessionKey,
  signal: AbortSignal,
): Promise<SessionRows> {
  const surfaces = hasSurface ? 'groupUniqArray(surface_id)' : 'emptyArrayString()'
  const [found] = await selectRows<{ total: string; surfaceIds: string[] }>(client, {
    query: `SELECT count() AS total, ${surfaces} AS surfaceIds FROM ${table} WHERE ${OF_SESSION}`,
    params: { workspaceId, sessionId },
    signal,
  })
  return { rows: Number(found?.total ?? 0), surfaceIds: found?.surfaceIds ?? [] }
}

/**
 * Deletes the rows of a session and resolves when no read finds them any more. Their bytes leave the disk with the next
 * merge of their part, and with its day at the latest. Throws what `classifyClickHouseError` says.
 */
export async function deleteSessionRows(
  client: ClickHouseClient,
  { table }: SessionTable,
  { workspaceId, sessionId }: SessionKey,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.command({
      query: `DELETE FROM ${table} WHERE ${OF_SESSION}`,
      query_params: { workspaceId, sessionId },
      clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2', wait_end_of_query: 1 },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
