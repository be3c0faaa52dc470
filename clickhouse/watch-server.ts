import type { Metrics } from '../shared/runtime/metrics.ts'
import { shareReads } from '../shared/runtime/shared-read.ts'
import { type ClickHouseClient, onEachShard } from './client.ts'
import { selectRows } from './select.ts'

/** A report of metrics must not wait for ClickHouse. */
const READ_TIMEOUT_MS = 900
/** The system tables are read at most once in this time, however many scrapers there are. */
const KEEP_MS = 5_000

/** One value of the server: a metric, and the table or disk that it belongs to. */
interface ServerValue {
  readonly metric: string
  readonly name: string
  readonly value: number
}

/**
 * Reads the state of the tables of this database, of their merges and mutations, and of disks and memory. The tables of the
 * service have at most a few hundred parts each, so this reads some thousand rows of system tables.
 */
const SERVER_QUERY = `
  WITH active AS (
    SELECT table, partition_id, count() AS parts, sum(rows) AS rows, sum(bytes_on_disk) AS bytes
    FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table, partition_id
  )
  SELECT metric, name, toFloat64(value) AS value FROM (
    SELECT 'parts' AS metric, table AS name, toFloat64(sum(parts)) AS value FROM active GROUP BY table
    UNION ALL SELECT 'partition_parts_max', table, toFloat64(max(parts)) FROM active GROUP BY table
    UNION ALL SELECT 'rows', table, toFloat64(sum(rows)) FROM active GROUP BY table
    UNION ALL SELECT 'bytes', table, toFloat64(sum(bytes)) FROM active GROUP BY table
    UNION ALL SELECT 'deduplication_window', name,
      toFloat64OrZero(extract(engine_full, 'non_replicated_deduplication_window = (\\\\d+)'))
      FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'
    UNION ALL SELECT 'merges', '', toFloat64(count()) FROM system.merges WHERE database = currentDatabase()
    UNION ALL SELECT 'merge_longest_seconds', '', toFloat64(max(elapsed)) FROM system.merges
      WHERE database = currentDatabase()
    UNION ALL SELECT 'mutations', '', toFloat64(count()) FROM system.mutations
      WHERE database = currentDatabase() AND NOT is_done
    UNION ALL SELECT 'disk_free_bytes', name, toFloat64(unreserved_space) FROM system.disks
    UNION ALL SELECT 'disk_bytes', name, toFloat64(total_space) FROM system.disks
    UNION ALL SELECT 'memory_bytes', '', toFloat64(value) FROM system.metrics WHERE metric = 'MemoryTracking'
  )`

/** Metrics of the server by their name in the query, with the label of what they belong to. */
const GAUGES: Readonly<Record<string, { readonly help: string; readonly label?: 'table' | 'disk' }>> = {
  parts: { help: 'Active parts.', label: 'table' },
  partition_parts_max: {
    help: 'Active parts of the partition that has most. ClickHouse delays inserts at 1,000 and refuses them at 3,000.',
    label: 'table',
  },
  rows: { help: 'Stored rows, with duplicates that are not merged yet.', label: 'table' },
  bytes: { help: 'Bytes of the active parts on disk.', label: 'table' },
  deduplication_window: { help: 'Inserts of a table that are recognized when they are repeated.', label: 'table' },
  merges: { help: 'Merges in progress.' },
  merge_longest_seconds: { help: 'Time that the longest merge in progress has taken. 0 if there is none.' },
  mutations: { help: 'Mutations that are not finished.' },
  disk_free_bytes: { help: 'Free bytes of a disk of the server.', label: 'disk' },
  disk_bytes: { help: 'Size of a disk of the server.', label: 'disk' },
  memory_bytes: { help: 'Memory in use by the server.' },
}

/** Metrics of which the largest value of the shards counts. All others are added up. */
const LARGEST = new Set(['partition_parts_max', 'merge_longest_seconds', 'deduplication_window'])

/** Returns the values of all shards together. Disks are those of one shard each. */
function combine(shards: readonly (readonly ServerValue[])[]): readonly ServerValue[] {
  if (shards.length === 1) return shards[0] ?? []
  const combined = new Map<string, ServerValue>()
  for (const [shard, values] of shards.entries()) {
    for (const found of values) {
      const name = found.metric.startsWith('disk_') ? `${found.name} of shard ${shard + 1}` : found.name
      const key = `${found.metric} ${name}`
      const before = combined.get(key)?.value ?? 0
      const value = LARGEST.has(found.metric) ? Math.max(before, found.value) : before + found.value
      combined.set(key, { metric: found.metric, name, value })
    }
  }
  return [...combined.values()]
}

/**
 * Shows the state of ClickHouse as `penstock_clickhouse_*`. Read when metrics are collected, with one query of each shard. While a
 * server does not answer, `penstock_clickhouse_up` is 0 and there is no other series.
 */
export function watchClickHouse(metrics: Metrics, client: ClickHouseClient): void {
  const read = shareReads(KEEP_MS, () => {
    const signal = AbortSignal.timeout(READ_TIMEOUT_MS)
    const ofServers = onEachShard(client, server =>
      selectRows<ServerValue>(server, { query: SERVER_QUERY, params: {}, signal }),
    )
    return ofServers.then(combine).catch(() => undefined)
  })
  metrics.gauge({
    name: 'penstock_clickhouse_up',
    help: '1 if ClickHouse answers a read of its state within a second.',
    async collect() {
      this.set((await read()) === undefined ? 0 : 1)
    },
  })
  for (const [metric, { help, label }] of Object.entries(GAUGES)) {
    metrics.gauge({
      name: `penstock_clickhouse_${metric}`,
      help,
      labelNames: label === undefined ? [] : [label],
      async collect() {
        const values = await read()
        this.reset()
        for (const { name, value } of values?.filter(found => found.metric === metric) ?? []) {
          this.set(label === undefined ? {} : { [label]: name }, value)
        }
      },
    })
  }
}
