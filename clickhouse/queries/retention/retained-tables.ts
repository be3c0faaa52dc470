import type { RowKind } from '../../../shared/runtime/retention.ts'

/** A table whose rows are kept for the retention of a kind of data. Its partitions are the days of `day`. */
export interface RetainedTable {
  readonly table: string
  readonly kind: RowKind
  /** Expression of the day of a row, by which the table is partitioned. */
  readonly day: string
  /** Whether rows count as stored requests do, with surface and arrival. Rows of the others are derived from them. */
  readonly isSource: boolean
}

const BY_ARRIVAL = 'toDate(received_at)'

/**
 * Every table with rows of clients that have an age. Only `ingest_log` is left out, in which receipts and the audit are
 * looked up: it has the retention of the installation. `source_maps` has no age, its rows go with their release.
 */
export const RETAINED_TABLES: readonly RetainedTable[] = [
  source('spans', 'traces'),
  derived('session_traces', 'traces', 'day'),
  derived('trace_buckets', 'traces', 'day'),
  derived('span_stats', 'traces', BY_ARRIVAL),
  derived('service_edges', 'traces', BY_ARRIVAL),
  source('logs', 'logs'),
  source('metric_points', 'metrics'),
  source('exceptions', 'findings'),
  source('failures', 'findings'),
  derived('exception_twins', 'findings', BY_ARRIVAL),
  derived('findings', 'findings', 'day'),
  derived('finding_buckets', 'findings', 'day'),
  derived('finding_arrivals', 'findings', 'toDate(arrived)'),
  derived('finding_frames', 'findings', BY_ARRIVAL),
  derived('release_frames', 'findings', 'day'),
  source('session_identities', 'sessions'),
  source('session_heartbeats', 'sessions'),
  derived('page_requests', 'sessions', BY_ARRIVAL),
  source('replay_chunks', 'replay'),
  source('build_reports', 'build-reports'),
  source('dead_letters', 'dead-letters'),
]

function source(table: string, kind: RowKind): RetainedTable {
  return { table, kind, day: BY_ARRIVAL, isSource: true }
}

function derived(table: string, kind: RowKind, day: string): RetainedTable {
  return { table, kind, day, isSource: false }
}
