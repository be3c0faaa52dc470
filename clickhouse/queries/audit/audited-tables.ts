import type { AdmittedQueue } from '../../../schemas/queues/names.ts'

/** A table whose rows are counted against the log of the batches that wrote them. */
export interface AuditedTable {
  readonly table: string
  /** Kinds of requests that write rows. */
  readonly kinds: readonly AdmittedQueue[]
  /** Number of rows that a row of `ingest_log` has written. */
  readonly logged: string
  /** A table whose rows count too. */
  readonly beside?: string
}

/** The tables with one row for each record, so that a row too many or too few is seen. */
export const AUDITED_TABLES: readonly AuditedTable[] = [
  { table: 'spans', kinds: ['traces'], logged: 'rows' },
  { table: 'logs', kinds: ['logs'], logged: 'rows' },
  { table: 'metric_points', kinds: ['metrics'], logged: 'rows' },
  { table: 'exceptions', beside: 'failures', kinds: ['traces', 'logs'], logged: 'derived_rows' },
  { table: 'session_identities', kinds: ['sessions'], logged: 'rows - derived_rows' },
  { table: 'session_heartbeats', kinds: ['sessions'], logged: 'derived_rows' },
  { table: 'replay_chunks', kinds: ['replay'], logged: 'rows' },
  { table: 'build_reports', kinds: ['build-reports'], logged: 'rows' },
  {
    table: 'dead_letters',
    kinds: ['traces', 'logs', 'metrics', 'sessions', 'replay', 'source-maps', 'completions', 'build-reports'],
    logged: 'arraySum(mapValues(dead_lettered))',
  },
]
