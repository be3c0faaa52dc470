import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Identifies a user of a workspace. */
interface IdentifierKey {
  readonly workspaceId: string
  readonly identifier: string
  /** Source of identities; all sources if left out. */
  readonly sourceType?: string | undefined
}

/** Returns up to `limit` sessions that were ever identified with this identifier. */
export async function selectIdentifiedSessions(
  client: ClickHouseClient,
  { workspaceId, identifier, sourceType }: IdentifierKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ sessionId: string }>(client, {
    query: `
      SELECT DISTINCT session_id AS sessionId FROM session_identities
      WHERE workspace_id = {workspaceId: String} AND identifier = {identifier: String}
        ${sourceType === undefined ? '' : 'AND source_type = {sourceType: String}'}
      LIMIT {limit: UInt32}`,
    params: { workspaceId, identifier, sourceType, limit },
    signal,
  })
  return rows.map(({ sessionId }) => sessionId)
}
