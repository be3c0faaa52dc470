import { hash } from 'node:crypto'
import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { classifyClickHouseError, onEachShard } from '../../client.ts'
import { LOGGED_ROWS } from '../../logged-rows.ts'
import { selectRows } from '../../select.ts'

/** Rows to delete on purpose. */
export interface CountedDeletion {
  readonly table: string
  /** Condition on the workspace and on what goes. */
  readonly where: string
  readonly params: Readonly<Record<string, unknown>>
  /** The only day that is touched, `2026-11-22`; every day if left out. */
  readonly day?: string
  /** Whether the rows are stored requests, with surface and arrival. Only these are counted in `deleted_rows`. */
  readonly isSource: boolean
  readonly reason: 'expired' | 'erased' | 'purged'
  /** Text that is the same when this deletion is repeated after a crash. The same rows of the same id are counted once. */
  readonly id: string
  /** Runs with the number of rows before they are deleted, if there are any. In a cluster, for each shard. */
  readonly onCounted?: (rows: number, shard: number) => Promise<void>
}

/**
 * Deletes rows, counts them in `deleted_rows` before, and returns their number. They are found by no read when it returns.
 * Their bytes leave the disk with the next merge of their part, with its day, or by `rewriteMasked`. Throws the result of
 * `classifyClickHouseError`.
 */
export async function deleteCountedRows(
  client: ClickHouseClient,
  deletion: CountedDeletion,
  signal: AbortSignal,
): Promise<number> {
  const rows = await onEachShard(client, (shard, number) => deleteOnShard(shard, number, deletion, signal))
  return rows.reduce((sum, ofShard) => sum + ofShard, 0)
}

async function deleteOnShard(
  client: ClickHouseClient,
  shard: number,
  deletion: CountedDeletion,
  signal: AbortSignal,
): Promise<number> {
  const { table, day, isSource, reason, id } = deletion
  const partition = day === undefined ? '' : '_partition_id = {partitionId: String} AND '
  const params = { ...deletion.params, partitionId: day?.replaceAll('-', '') }
  // A later deletion of as many rows has other rows, so that it is not taken for a repetition.
  const contents = isSource ? 'sum(cityHash64(tuple(*)))' : '0'
  const hours = isSource ? "groupUniqArray(toString(toStartOfHour(received_at, 'UTC')))" : '[]'
  const [found] = await selectRows<{ total: string; contents: string; hours: readonly string[] }>(client, {
    query: `SELECT count() AS total, toString(${contents}) AS contents, ${hours} AS hours FROM ${table} WHERE ${partition}(${deletion.where})`,
    params,
    signal,
  })
  const rows = Number(found?.total ?? 0)
  if (found === undefined || rows === 0) return 0
  await deletion.onCounted?.(rows, shard)
  // A row that arrives meanwhile goes only if its hour is counted: else its trace would be called complete without it.
  const where = isSource
    ? `(${deletion.where}) AND toString(toStartOfHour(received_at, 'UTC')) IN {hours: Array(String)}`
    : deletion.where
  const bound = { ...params, ...(isSource && { hours: found.hours }) }
  const run = (query: string, settings: ClickHouseSettings) =>
    runStatement(client, { query, params: bound, settings, signal })
  if (isSource) {
    await run(
      `INSERT INTO deleted_rows (workspace_id, surface_id, received_hour, table_name, reason, rows)
       SELECT workspace_id, surface_id, toStartOfHour(received_at) AS hour, '${table}', '${reason}', count()
       FROM ${table} WHERE ${partition}${where} AND ${LOGGED_ROWS[table] ?? '1'}
       GROUP BY workspace_id, surface_id, hour ORDER BY ALL`,
      {
        insert_deduplicate: 1,
        insert_deduplication_token: hash('sha256', [reason, id, table, day, rows, found.contents].join(':')),
        deduplicate_insert_select: 'force_enable',
        max_partitions_per_insert_block: '0',
      },
    )
  }
  await run(`DELETE FROM ${table} ${day === undefined ? '' : `IN PARTITION '${day}'`} WHERE ${where}`, {
    lightweight_deletes_sync: '2',
    mutations_sync: '2',
  })
  return rows
}

interface Statement {
  readonly query: string
  readonly params: Readonly<Record<string, unknown>>
  readonly settings: ClickHouseSettings
  readonly signal: AbortSignal
}

async function runStatement(client: ClickHouseClient, { query, params, settings, signal }: Statement): Promise<void> {
  try {
    await client.command({
      query,
      query_params: params,
      // A client that only reads forbids it by this setting.
      clickhouse_settings: { ...settings, readonly: '0', wait_end_of_query: 1 },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
