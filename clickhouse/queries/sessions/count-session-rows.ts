import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey, type SessionTable } from './session-key.ts'

/** Number of rows of a session in a table, and their surfaces. */
interface SessionRows {
  readonly rows: number
  readonly surfaceIds: readonly string[]
}

/** Counts the rows of a session in a table. */
export async function countSessionRows(
  client: ClickHouseClient,
  { table, isSource }: SessionTable,
  { workspaceId, sessionId }: SessionKey,
  signal: AbortSignal,
): Promise<SessionRows> {
  const surfaces = isSource ? 'groupUniqArray(surface_id)' : 'emptyArrayString()'
  const [found] = await selectRows<{ total: string; surfaceIds: string[] }>(client, {
    query: `SELECT count() AS total, ${surfaces} AS surfaceIds FROM ${table} WHERE ${OF_SESSION}`,
    params: { workspaceId, sessionId },
    signal,
  })
  return { rows: Number(found?.total ?? 0), surfaceIds: found?.surfaceIds ?? [] }
}
