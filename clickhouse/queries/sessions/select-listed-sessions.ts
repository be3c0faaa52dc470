import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { REQUEST_TABLES, withinDay } from './select-sessions-page.ts'

/** Sessions of a workspace. */
export interface SessionsKey {
  readonly workspaceId: string
  /** At most 100. */
  readonly sessionIds: readonly string[]
}

/** Arrivals and surfaces of the requests of a session. 64-bit numbers are decimal text. */
export interface SessionRequestsRow {
  readonly id: string
  readonly surfaceIds: readonly string[]
  readonly firstMs: string
  readonly lastMs: string
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
export interface SessionSpansRow {
  readonly id: string
  readonly traceCount: string
  readonly errorCount: string
  /** Start of the first and end of the last span, each within the day of its arrival, Unix ms. */
  readonly firstMs: string
  readonly lastMs: string
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

/** Returns when the requests of these sessions arrived, and from which surfaces. Sessions of spans alone have no row. */
export function selectSessionRequests(
  client: ClickHouseClient,
  key: SessionsKey,
  { surfaces }: Pick<ListedLimits, 'surfaces'>,
  signal: AbortSignal,
): Promise<SessionRequestsRow[]> {
  const selects = REQUEST_TABLES.map(
    table => `SELECT session_id, surface_id, received_at, ${table === 'replay_chunks' ? 1 : 0} AS chunk
      FROM ${table} WHERE ${OF_SESSIONS}`,
  )
  return selectRows<SessionRequestsRow>(client, {
    query: `
      SELECT session_id AS id, arraySort(groupUniqArray(${surfaces})(surface_id)) AS surfaceIds,
             toUnixTimestamp64Milli(min(received_at)) AS firstMs, toUnixTimestamp64Milli(max(received_at)) AS lastMs,
             sum(chunk) AS replayChunkCount
      FROM (${selects.join(' UNION ALL ')}) GROUP BY session_id`,
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
             min(${withinDay('first_start_unix_nano')}) AS firstMs, max(${withinDay('last_end_unix_nano')}) AS lastMs
      FROM session_traces WHERE ${OF_SESSIONS} GROUP BY session_id`,
    params: { ...key },
    signal,
  })
}

/** Returns the number of findings of these sessions. */
export function selectSessionFindingCounts(
  client: ClickHouseClient,
  key: SessionsKey,
  signal: AbortSignal,
): Promise<SessionFindingsRow[]> {
  return selectRows<SessionFindingsRow>(client, {
    query: `
      SELECT session_id AS id, uniqExact(finding_id) AS findingCount
      FROM session_findings WHERE ${OF_SESSIONS} GROUP BY session_id`,
    params: { ...key },
    signal,
  })
}
