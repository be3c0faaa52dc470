import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { deleteCountedRows } from '../../../../clickhouse/queries/retention/delete-counted-rows.ts'
import { OF_SESSION, SESSION_TABLES } from '../../../../clickhouse/queries/sessions/session-key.ts'
import { type Answer, call, putWorkspace, signToken } from '../../../support/services/api.ts'
import { at, insertRows, type SessionOwner } from '../../../support/workspaces/session-rows.ts'

/** A workspace with one user, who reads it. */
export interface Reader {
  readonly workspaceId: string
  /** Requests a path with the user's token. */
  get(path: string): Promise<Answer>
}

/** Stores a workspace and returns its reader. `name` consists of small letters. */
export async function createReader(redisUrl: string, apiUrl: string, name: string): Promise<Reader> {
  const slug = `${name}${process.pid}`
  const workspaceId = `ws_${slug}`
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  const bearer = await signToken({ org: slug })
  return { workspaceId, get: path => call(apiUrl, `GET ${path}`, { bearer }) }
}

/** A row of a request that names a session; absent fields have defaults. */
export interface RequestRow extends Partial<SessionOwner> {
  readonly sessionId: string
  readonly receivedAtMs: number
  /** Further columns of its table. */
  readonly columns?: object
}

/** Stores rows of `session_identities`, `session_heartbeats` or `replay_chunks`. */
export async function insertRequests(
  client: ClickHouseClient,
  table: 'session_identities' | 'session_heartbeats' | 'replay_chunks',
  { workspaceId }: Pick<Reader, 'workspaceId'>,
  rows: readonly RequestRow[],
): Promise<void> {
  const values = rows.map(({ surfaceId = 'srf_1', sessionId, receivedAtMs, columns }) => ({
    workspace_id: workspaceId,
    surface_id: surfaceId,
    session_id: sessionId,
    received_at: at(receivedAtMs),
    ...columns,
  }))
  await insertRows(client, table, values)
}

/** Deletes everything of a session, as its erasure does. */
export async function eraseSession(
  client: ClickHouseClient,
  { workspaceId }: Pick<Reader, 'workspaceId'>,
  sessionId: string,
): Promise<void> {
  for (const { table, isSource } of SESSION_TABLES) {
    const params = { workspaceId, sessionId }
    const deletion = { table, where: OF_SESSION, params, isSource, reason: 'erased', id: sessionId } as const
    await deleteCountedRows(client, deletion, AbortSignal.timeout(30_000))
  }
}
