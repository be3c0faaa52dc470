import { type ClickHouseClient, classifyClickHouseError, onEachShard } from '../../client.ts'
import { countDeletion, LOGGED_LETTERS } from '../../count-deletion.ts'
import { HAS_KEY, keyParams, type LetterKey } from './letter.ts'

/**
 * Counts and deletes the rows of letters, and resolves when no read finds them any more. Throws the result of
 * `classifyClickHouseError`.
 */
export async function deleteLetterRows(
  client: ClickHouseClient,
  workspaceId: string,
  keys: readonly LetterKey[],
  signal: AbortSignal,
): Promise<void> {
  if (keys.length > 0) await onEachShard(client, shard => deleteOnShard(shard, workspaceId, keys, signal))
}

async function deleteOnShard(
  client: ClickHouseClient,
  workspaceId: string,
  keys: readonly LetterKey[],
  signal: AbortSignal,
): Promise<void> {
  const params = keyParams(workspaceId, keys)
  const where = `${HAS_KEY} AND ${LOGGED_LETTERS}`
  await countDeletion(client, { table: 'dead_letters', where, params }, signal)
  try {
    await client.command({
      query: `DELETE FROM dead_letters WHERE ${HAS_KEY}`,
      query_params: params,
      use_multipart_params: true,
      // A client that only reads forbids it by this setting.
      clickhouse_settings: { readonly: '0', lightweight_deletes_sync: '2', mutations_sync: '2', wait_end_of_query: 1 },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
