import type { ClickHouseClient } from '@clickhouse/client'
import { DAY_S } from '../../schemas/units.ts'
import { quoteIdentifier } from '../quote.ts'

/** Settings of the tables that workers fill, which an operator chooses. */
export interface TableSettings {
  /** Inserts per second and queue whose repetitions are recognized for a day. */
  readonly insertsPerSecond: number
  /** Whether an insert is on disk when it is confirmed. */
  readonly fsync: boolean
  /** Whether the tables are replicated, so that the replicas of a shard recognize repetitions together. */
  readonly isReplicated?: boolean
}

/** Defaults of `npm run migrate`. */
export const TABLE_SETTINGS: TableSettings = { insertsPerSecond: 4, fsync: true }

/**
 * How long a repeated insert is recognized: longer than a batch waits for a worker, but for outages of a day. A full window of a
 * million inserts takes 200 MB of memory, 66 MB of disk and 0.7 s when the table is loaded.
 */
const WINDOW_SECONDS = DAY_S

/**
 * Inserts into each table, as a multiple of the inserts of one queue. A view has those of the table that it reads.
 * Batches of exceptions are further apart, and more often full. Every batch of every queue adds to `ingest_log`: four queues
 * are busy at the same time in most installations. Tables that few requests fill have a quarter, and so have `source_maps`,
 * the frames of findings and the statistics of spans.
 */
const INSERTS_OF_TABLES: Readonly<Record<string, number>> = {
  spans: 1,
  session_traces: 1,
  logs: 1,
  metric_points: 1,
  session_identities: 1,
  session_heartbeats: 1,
  replay_chunks: 1,
  exceptions: 1,
  failures: 1,
  exception_twins: 0.25,
  findings: 1,
  finding_buckets: 1,
  // A row that is stored twice changes nothing.
  finding_arrivals: 0,
  trace_buckets: 0,
  finding_variants: 0,
  ingest_log: 4,
  page_requests: 4,
  dead_letters: 0.25,
  build_reports: 0.25,
  finding_frames: 0.25,
  release_frames: 0.25,
  source_maps: 0.25,
  span_stats: 0.25,
  // One a minute.
  service_edges: 0.25,
  deleted_rows: 0.25,
  request_counts: 0.25,
}

/** Returns the settings that a table should have. Empty for tables that no worker fills. */
function settingsOf(
  table: string,
  { insertsPerSecond, fsync, isReplicated = false }: TableSettings,
): Record<string, number> {
  const inserts = INSERTS_OF_TABLES[table]
  if (inserts === undefined) return {}
  const window = Math.ceil(insertsPerSecond * inserts * WINDOW_SECONDS)
  return {
    ...(isReplicated
      ? { replicated_deduplication_window: window, replicated_deduplication_window_seconds: WINDOW_SECONDS }
      : { non_replicated_deduplication_window: window }),
    fsync_after_insert: Number(fsync),
    fsync_part_directory: Number(fsync),
    // The parts that were merged are deleted, so that the merged part must be on disk before.
    min_rows_to_fsync_after_merge: Number(fsync),
  }
}

/** A table with settings to change, as `name = value`. */
interface StaleSettings {
  readonly table: string
  readonly changes: readonly string[]
}

/** Finds tables whose settings differ from the wanted ones. A setting that is not stated is 0. */
export async function staleSettings(
  client: ClickHouseClient,
  database: string,
  wanted: TableSettings,
): Promise<StaleSettings[]> {
  const result = await client.query({
    query: `SELECT name, engine_full FROM system.tables
            WHERE database = {database: String} AND engine LIKE '%MergeTree' ORDER BY name`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  return (await result.json<{ name: string; engine_full: string }>())
    .map(({ name, engine_full }) => ({
      table: name,
      changes: Object.entries(settingsOf(name, wanted))
        .filter(([setting, value]) => valueIn(engine_full, setting) !== value)
        .map(([setting, value]) => `${setting} = ${value}`),
    }))
    .filter(({ changes }) => changes.length > 0)
}

function valueIn(engine: string, setting: string): number {
  return Number(new RegExp(`\\b${setting} = (\\d+)`).exec(engine)?.[1] ?? 0)
}

/** Changes the settings of a table. Only its metadata is written. */
export async function changeSettings(
  client: ClickHouseClient,
  database: string,
  { table, changes }: StaleSettings,
): Promise<void> {
  const name = `${quoteIdentifier(database)}.${quoteIdentifier(table)}`
  await client.command({ query: `ALTER TABLE ${name} MODIFY SETTING ${changes.join(', ')}` })
}
