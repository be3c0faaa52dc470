import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { FINDINGS_SETTINGS } from './findings-settings.ts'
import { type OccurrenceRange, ofOccurrences } from './select-newest.ts'

/** Columns whose most frequent values are shown. */
export const VALUE_COLUMNS = ['service_version', 'browser', 'system', 'route', 'environment', 'host'] as const

/** Chooses the occurrences that are read, and how many values of each kind are shown. */
interface ValuesKey extends OccurrenceRange {
  /** Most occurrences that are read. */
  readonly occurrences: number
  readonly values: number
}

/** How often a value occurred. 64-bit numbers are decimal text. */
export interface ValueRow {
  readonly kind: (typeof VALUE_COLUMNS)[number]
  /** Empty for the occurrences without a value. */
  readonly value: string
  readonly total: string
  /** Values of the kind, with the empty one. */
  readonly distinctCount: string
  /** Occurrences that were read. */
  readonly examined: string
}

/** Returns how often the most frequent values occurred, with the empty one of each kind first. */
export function selectFindingValues(
  client: ClickHouseClient,
  key: ValuesKey,
  signal: AbortSignal,
): Promise<ValueRow[]> {
  // Exactly one column is that of a group, and the others are empty in it.
  const kind = VALUE_COLUMNS.map(column => `grouping(${column}) = 1, '${column}'`).join(', ')
  return selectRows<ValueRow>(client, {
    query: `
      SELECT kind, value, total, count() OVER (PARTITION BY kind) AS distinctCount, sum(total) OVER (PARTITION BY kind) AS examined
      FROM (
        SELECT multiIf(${kind}, '') AS kind, concat(${VALUE_COLUMNS.join(', ')}) AS value, count() AS total
        FROM (${newestOf(key, VALUE_COLUMNS)})
        GROUP BY GROUPING SETS (${VALUE_COLUMNS.map(column => `(${column})`).join(', ')}))
      ORDER BY kind, value != '', total DESC, value LIMIT {perKind: UInt32} BY kind`,
    params: { ...key, perKind: key.values + 1 },
    signal,
    settings: { ...FINDINGS_SETTINGS, force_grouping_standard_compatibility: 0 },
  })
}

/** Counts the occurrences of a finding. */
export async function countOccurrences(
  client: ClickHouseClient,
  key: OccurrenceRange,
  signal: AbortSignal,
): Promise<number> {
  const [row] = await selectRows<{ total: string }>(client, {
    query: `SELECT count() AS total FROM exceptions WHERE ${ofOccurrences(key)}`,
    params: { ...key },
    signal,
    settings: FINDINGS_SETTINGS,
  })
  return Number(row?.total ?? 0)
}

/** A person who had occurrences in their sessions, and totals of all. 64-bit numbers are decimal text. */
interface PersonRow {
  /** Empty for all sessions without an identity. */
  readonly identifier: string
  readonly sessions: string
  readonly occurrences: string
  /** People with an identity. */
  readonly people: string
  readonly allSessions: string
}

/**
 * Returns the people with the most occurrences, and the sessions without an identity as one row, which is the first. The identity
 * of a session is the one that was received last.
 */
export function selectFindingPeople(
  client: ClickHouseClient,
  key: ValuesKey,
  signal: AbortSignal,
): Promise<PersonRow[]> {
  const sessions = `SELECT session_id, count() AS ofSession FROM (${newestOf(key, ['session_id'])}) WHERE session_id != '' GROUP BY session_id`
  return selectRows<PersonRow>(client, {
    query: `
      WITH occurred AS (${sessions})
      SELECT leftUTF8(person, 1024) AS identifier, count() AS sessions, sum(ofSession) AS occurrences,
             sum(person != '') OVER () AS people, sum(count()) OVER () AS allSessions
      FROM occurred LEFT JOIN (
        SELECT session_id, argMax(identifier, tuple(received_at, identifier, source_type, name, email)) AS person
        FROM session_identities
        WHERE workspace_id = {workspaceId: String}
          AND session_id IN (SELECT session_id FROM exceptions WHERE ${ofOccurrences(key)})
        GROUP BY session_id) AS identified USING (session_id)
      GROUP BY person
      ORDER BY person != '', occurrences DESC, person LIMIT {people: UInt32}`,
    params: { ...key, people: key.values + 1 },
    signal,
    settings: FINDINGS_SETTINGS,
  })
}

/** Returns the query of columns of the newest occurrences. They are not sorted, which would take longer than all else. */
function newestOf(key: ValuesKey, columns: readonly string[]): string {
  return `SELECT ${columns.join(', ')} FROM exceptions WHERE ${ofOccurrences(key)} LIMIT {occurrences: UInt32}`
}

/** The times of the recording of a session. Decimal text. */
interface RecordingRow {
  readonly id: string
  readonly firstMs: string
  readonly lastMs: string
}

/** Returns the recordings of sessions, at most 100. Sessions without one have no row. */
export function selectRecordings(
  client: ClickHouseClient,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  signal: AbortSignal,
): Promise<RecordingRow[]> {
  return selectRows<RecordingRow>(client, {
    query: `
      SELECT session_id AS id, min(first_event_ms) AS firstMs, max(last_event_ms) AS lastMs
      FROM replay_chunks
      WHERE workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)} AND event_count > 0
      GROUP BY session_id`,
    params: { ...key },
    signal,
    settings: FINDINGS_SETTINGS,
  })
}
