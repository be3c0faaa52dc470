import { DAY_MS, MINUTE_MS } from '../../../schemas/units.ts'
import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfVariants, isCounting, MERGES_SETTINGS } from '../attributes/membership.ts'
import { REQUEST_TABLES } from './select-sessions-page.ts'

/** Sessions of a workspace. */
export interface SessionsKey {
  readonly workspaceId: string
  /** At most 100. */
  readonly sessionIds: readonly string[]
}

/**
 * Times that senders state of what happened in a session. A time that is more than 31 days before its arrival, or five minutes
 * after it, is of a wrong clock, and counts as none. 64-bit numbers are decimal text.
 */
export interface StatedTimes {
  /** Unix ns. Both are 0 if no time is stated. */
  readonly firstNano: string
  readonly lastNano: string
  /** How late the most punctual of it arrived, in ms. */
  readonly latenessMs: string
}

/** Arrivals and surfaces of the requests of a session, and the times of its recording. 64-bit numbers are decimal text. */
export interface SessionRequestsRow extends StatedTimes {
  readonly id: string
  readonly surfaceIds: readonly string[]
  /** Arrivals of identities, heartbeats, and chunks without a time. Both are 0 if there are none. */
  readonly firstArrivalMs: string
  readonly lastArrivalMs: string
  readonly replayChunkCount: string
}

/** The user of the identity of a session that was received last. Absent values are empty texts. */
export interface SessionUserRow {
  readonly id: string
  readonly identifier: string
  readonly name: string
  readonly email: string
}

/** Counts and times of the spans of a session. 64-bit numbers are decimal text. */
export interface SessionSpansRow extends StatedTimes {
  readonly id: string
  readonly traceCount: string
  readonly errorCount: string
  /** Start of the first and end of the last span as they were sent, by whatever clock, Unix ns. */
  readonly firstSentNano: string
  readonly lastSentNano: string
}

/** How many findings occurred in a session. */
export interface SessionFindingsRow {
  readonly id: string
  readonly findingCount: string
}

/** Limits of what a list shows of each session. */
interface ListedLimits {
  readonly surfaces: number
  /** Characters of an identifier or a name. */
  readonly textCharacters: number
}

const OF_SESSIONS = 'workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}'

/** Condition on the rows of `exceptions` of the traces of these sessions. */
const OF_TRACES = `workspace_id = {workspaceId: String}
  AND trace_id IN (SELECT trace_id FROM session_traces WHERE ${OF_SESSIONS})`

/** Returns the condition that times of the sender, in ms, are plausible for an arrival. */
const isPlausible = (firstMs: string, lastMs: string, arrivalMs: string) =>
  `${firstMs} >= ${arrivalMs} - ${31 * DAY_MS} AND ${lastMs} <= ${arrivalMs} + ${5 * MINUTE_MS}`

/** Returns when the requests of these sessions arrived, and from which surfaces. Sessions of spans alone have no row. */
export function selectSessionRequests(
  client: ClickHouseClient,
  key: SessionsKey,
  { surfaces }: Pick<ListedLimits, 'surfaces'>,
  signal: AbortSignal,
): Promise<SessionRequestsRow[]> {
  const selects = REQUEST_TABLES.map(
    table => `SELECT session_id, surface_id, toUnixTimestamp64Milli(received_at) AS arrivalMs,
                     ${table === 'replay_chunks' ? '1 AS chunk, first_event_ms AS firstMs, last_event_ms AS lastMs' : '0 AS chunk, toInt64(0) AS firstMs, toInt64(0) AS lastMs'}
      FROM ${table} WHERE ${OF_SESSIONS}`,
  )
  const isStated = `chunk = 1 AND ${isPlausible('firstMs', 'lastMs', 'arrivalMs')}`
  return selectRows<SessionRequestsRow>(client, {
    query: `
      SELECT session_id AS id, arraySort(groupUniqArray(${surfaces})(surface_id)) AS surfaceIds,
             minIf(arrivalMs, NOT isStated) AS firstArrivalMs, maxIf(arrivalMs, NOT isStated) AS lastArrivalMs,
             minIf(firstMs, isStated) * 1000000 AS firstNano, maxIf(lastMs, isStated) * 1000000 AS lastNano,
             minIf(arrivalMs - lastMs, isStated) AS latenessMs, sum(chunk) AS replayChunkCount
      FROM (SELECT *, ${isStated} AS isStated FROM (${selects.join(' UNION ALL ')})) GROUP BY session_id`,
    params: { ...key },
    signal,
  })
}

/** Returns the users of these sessions, of the identities that were received last. */
export function selectSessionUsers(
  client: ClickHouseClient,
  key: SessionsKey,
  { textCharacters }: Pick<ListedLimits, 'textCharacters'>,
  signal: AbortSignal,
): Promise<SessionUserRow[]> {
  const cut = (text: string) => `leftUTF8(${text}, ${textCharacters})`
  return selectRows<SessionUserRow>(client, {
    query: `
      SELECT session_id AS id, latest.1 AS identifier, latest.2 AS name, latest.3 AS email
      FROM (
        SELECT session_id, argMax(tuple(${cut('identifier')}, ${cut('name')}, email),
                                  tuple(received_at, identifier, source_type, name, email)) AS latest
        FROM session_identities WHERE ${OF_SESSIONS} GROUP BY session_id)`,
    params: { ...key },
    signal,
  })
}

/** Returns the counts and times of the spans of these sessions. */
export function selectSessionSpans(
  client: ClickHouseClient,
  key: SessionsKey,
  signal: AbortSignal,
): Promise<SessionSpansRow[]> {
  return selectRows<SessionSpansRow>(client, {
    query: `
      SELECT session_id AS id, uniqExact(trace_id) AS traceCount, sum(error_count) AS errorCount,
             min(first_start_unix_nano) AS firstSentNano, max(last_end_unix_nano) AS lastSentNano,
             minIf(first_start_unix_nano, isStated) AS firstNano, maxIf(last_end_unix_nano, isStated) AS lastNano,
             minIf(arrivalMs - lastMs, isStated) AS latenessMs
      FROM (
        SELECT session_id, trace_id, error_count, first_start_unix_nano, last_end_unix_nano,
               toUnixTimestamp64Milli(last_received_at) AS arrivalMs, toInt64(intDiv(last_end_unix_nano, 1000000)) AS lastMs,
               ${isPlausible('toInt64(intDiv(first_start_unix_nano, 1000000))', 'lastMs', 'arrivalMs')} AS isStated
        FROM session_traces WHERE ${OF_SESSIONS})
      GROUP BY session_id`,
    params: { ...key },
    signal,
  })
}

/** Returns the number of findings of these sessions. */
export function selectSessionFindingCounts(
  client: ClickHouseClient,
  key: SessionsKey,
  merges: FindingMerges,
  signal: AbortSignal,
): Promise<SessionFindingsRow[]> {
  return selectRows<SessionFindingsRow>(client, {
    query: `
      SELECT session_id AS id, uniqExact(variants.id) AS findingCount
      FROM (
        SELECT session_id, variant_id FROM exceptions WHERE ${OF_SESSIONS} AND ${isCounting(OF_SESSIONS)}
        UNION DISTINCT
        SELECT session_id, variant_id
        FROM (SELECT trace_id, variant_id FROM exceptions WHERE ${OF_TRACES} AND ${isCounting(OF_TRACES)}) AS thrown
        INNER JOIN (SELECT DISTINCT session_id, trace_id FROM session_traces WHERE ${OF_SESSIONS}) AS traces
          USING (trace_id)) AS occurred
      INNER JOIN (${findingsOfVariants(`SELECT variant_id FROM exceptions WHERE ${OF_SESSIONS} OR ${OF_TRACES}`, merges)})
        AS variants USING (variant_id)
      GROUP BY session_id`,
    params: { ...key },
    signal,
    settings: MERGES_SETTINGS,
  })
}
