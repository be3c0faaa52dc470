import type { ClickHouseClient } from '../../client.ts'
import { classifyClickHouseError, onEachShard } from '../../client.ts'
import { countDeletion } from '../../count-deletion.ts'
import { OF_SESSION, type SessionKey, type SessionTable } from './session-key.ts'

/**
 * Counts and deletes the rows of a session, and resolves when no read finds them any more. Their bytes leave the disk with the next
 * merge of their part, or with its day at the latest. Throws the result of `classifyClickHouseError`.
 */
export async function deleteSessionRows(
  client: ClickHouseClient,
  table: SessionTable,
  key: SessionKey,
  signal: AbortSignal,
): Promise<void> {
  await onEachShard(client, shard => deleteOnShard(shard, table, key, signal))
}

async function deleteOnShard(
  client: ClickHouseClient,
  { table, hasSurface }: SessionTable,
  key: SessionKey,
  signal: AbortSignal,
): Promise<void> {
  const params = { ...key }
  if (hasSurface) await countDeletion(client, { table, where: OF_SESSION, params, reason: 'erased' }, signal)
  try {
    await client.command({
      query: `DELETE FROM ${table} WHERE ${OF_SESSION}`,
      query_params: params,
      clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2', wait_end_of_query: 1 },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
