import { type ClickHouseClient, onEachShard } from '../client.ts'
import { selectRows } from '../select.ts'

/** Rows of each of these reads. */
const MAX_ROWS = 2_000
/** Characters of a message of the server. */
const MESSAGE = 300
/** Errors whose message names a missing table or column. Others may quote a value that somebody has sent. */
const NAMED_BY_ERROR = '16, 47, 60'

/** Reads of the system tables, by name. Neither texts of queries nor values of rows are among them. */
const READS = {
  server: 'SELECT version() AS version, uptime() AS uptimeSeconds, now() AS now, timezone() AS timezone',
  tables: `SELECT name, engine, total_rows AS rows, total_bytes AS bytes, create_table_query AS definition
    FROM system.tables WHERE database = currentDatabase() ORDER BY name`,
  parts: `SELECT table, count() AS parts, uniqExact(partition) AS partitions, sum(rows) AS rows, sum(bytes_on_disk) AS bytes,
      min(modification_time) AS oldest, max(modification_time) AS newest
    FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table ORDER BY table`,
  merges: `SELECT table, elapsed, progress, num_parts AS parts, is_mutation AS isMutation, total_size_bytes_compressed AS bytes
    FROM system.merges WHERE database = currentDatabase() ORDER BY elapsed DESC`,
  mutations: `SELECT table, mutation_id AS id, create_time AS createdAt, parts_to_do AS partsLeft, is_done AS isDone,
      substring(latest_fail_reason, 1, ${MESSAGE}) AS failure
    FROM system.mutations WHERE database = currentDatabase() ORDER BY create_time DESC`,
  errors: `SELECT name, code, value AS count, last_error_time AS lastAt,
      if(code IN (${NAMED_BY_ERROR}), substring(last_error_message, 1, ${MESSAGE}), '') AS message
    FROM system.errors ORDER BY last_error_time DESC`,
  disks: 'SELECT name, free_space AS freeBytes, total_space AS totalBytes, type FROM system.disks ORDER BY name',
  replicas: `SELECT table, is_readonly AS isReadonly, queue_size AS queued, absolute_delay AS delaySeconds, total_replicas AS replicas,
      active_replicas AS activeReplicas
    FROM system.replicas WHERE database = currentDatabase() ORDER BY table`,
} as const
/** Name of a read of the system tables. */
type DiagnosisRead = keyof typeof READS
/** The reads of the system tables. */
export const DIAGNOSIS_READS = Object.keys(READS) as DiagnosisRead[]

/** Reads system tables of each shard. Throws what `selectRows` throws. */
export function selectDiagnosis(
  client: ClickHouseClient,
  read: DiagnosisRead,
  signal: AbortSignal,
): Promise<readonly Readonly<Record<string, unknown>>[][]> {
  const query = `${READS[read]} LIMIT ${MAX_ROWS}`
  return onEachShard(client, shard => selectRows<Record<string, unknown>>(shard, { query, params: {}, signal }))
}
