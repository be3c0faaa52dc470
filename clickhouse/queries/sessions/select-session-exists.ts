import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

const TABLES = ['session_identities', 'session_heartbeats', 'replay_chunks', 'session_traces']

/** Returns whether any data of a session of this workspace is retained. */
export async function selectSessionExists(
  client: ClickHouseClient,
  { workspaceId, sessionId }: SessionKey,
  signal: AbortSignal,
): Promise<boolean> {
  const rows = await selectRows(client, {
    query: TABLES.map(table => `(SELECT 1 FROM ${table} WHERE ${OF_SESSION} LIMIT 1)`).join(' UNION ALL '),
    params: { workspaceId, sessionId },
    signal,
  })
  return rows.length > 0
}
