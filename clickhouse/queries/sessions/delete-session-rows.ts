import type { ClickHouseClient } from '../../client.ts'
import { classifyClickHouseError } from '../../client.ts'
import { OF_SESSION, type SessionKey, type SessionTable } from './session-key.ts'

/**
 * Deletes the rows of a session and resolves when no read finds them any more. Their bytes leave the disk with the next
 * merge of their part, or with its day at the latest. Throws the result of `classifyClickHouseError`.
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
