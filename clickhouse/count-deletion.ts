import { hash } from 'node:crypto'
import { ADMITTED_QUEUES } from '../schemas/queues/names.ts'
import { type ClickHouseClient, classifyClickHouseError } from './client.ts'
import { selectRows } from './select.ts'

/** Rows that are about to be purged. */
export interface Deletion {
  readonly table: string
  /** Condition on the rows, which carries the workspace. */
  readonly where: string
  readonly params: Readonly<Record<string, unknown>>
}

const LOGGED_QUEUES = [...ADMITTED_QUEUES, 'replay-chunks'].map(queue => `'${queue}'`).join(', ')

/** Condition on `dead_letters` that the letters of requests meet which `ingest_log` counts. Replays have further rows. */
export const LOGGED_LETTERS = `attempt = 0 AND queue IN (${LOGGED_QUEUES})`

/**
 * Counts rows in `deleted_rows` before they are deleted, so that an audit does not report them as lost. Repeated after a crash
 * with the same rows, it counts them once. In a cluster, the client is that of one shard. Throws the result of
 * `classifyClickHouseError`.
 */
export async function countDeletion(
  client: ClickHouseClient,
  { table, where, params }: Deletion,
  signal: AbortSignal,
): Promise<void> {
  const query = `SELECT count() AS total FROM ${table} WHERE ${where}`
  const [found] = await selectRows<{ total: string }>(client, { query, params, signal })
  if (found === undefined || found.total === '0') return
  const id = hash('sha256', JSON.stringify(params)).slice(0, 32)
  try {
    await client.command({
      query: `
        INSERT INTO deleted_rows (workspace_id, surface_id, received_hour, table_name, reason, rows)
        SELECT workspace_id, surface_id, toStartOfHour(received_at) AS hour, '${table}', 'purged', count()
        FROM ${table} WHERE ${where} GROUP BY workspace_id, surface_id, hour ORDER BY ALL`,
      query_params: params,
      use_multipart_params: true,
      clickhouse_settings: {
        // A client that only reads forbids it by this setting.
        readonly: '0',
        insert_deduplicate: 1,
        insert_deduplication_token: `purged:${table}:${id}:${found.total}`,
        max_partitions_per_insert_block: '0',
        wait_end_of_query: 1,
      },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
