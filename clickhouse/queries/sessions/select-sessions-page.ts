import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { type Select, selectRows } from '../../select.ts'
import { endOfPart } from './session-key.ts'

/** Selects the sessions of a list. An undefined field selects all. */
export interface SessionsFilter {
  /** Identifier or email of an identity, of any time. */
  readonly user: string | undefined
  readonly surfaceId: string | undefined
  readonly hasFinding: boolean
  readonly hasReplay: boolean
  /** Start of the period in which a session was seen, Unix ms, inclusive. */
  readonly fromMs: number | undefined
  /** End of the period, Unix ms, exclusive. */
  readonly toMs: number | undefined
}

/** Position of a session in a list. */
export interface SessionPosition {
  /** When it was last seen in the period of the list, Unix ms, decimal. */
  readonly lastMs: string
  /** A hash of its id, which may be too long for a cursor: 32 hex digits. */
  readonly idHash: string
}

/** A session of a page. */
interface FoundSession extends SessionPosition {
  readonly id: string
}

/** Selects a page of a list of sessions. */
interface SessionsPageKey {
  readonly workspaceId: string
  readonly filter: SessionsFilter
  /** Requests of this time or later do not count, Unix ms. All pages of a list have the same. */
  readonly beforeMs: number
  readonly limit: number
  /** The position after which the page begins. */
  readonly after: SessionPosition | undefined
}

/** Sessions of a page, and how far the list was searched. */
export interface FoundSessions {
  /** The last seen first. */
  readonly sessions: readonly FoundSession[]
  /** The position up to which the list was searched, if the search ended before the page was full and the list was at its end. */
  readonly searchedTo: SessionPosition | undefined
}

/** Periods before the start of a page, tried in this order. If one contains a full page, older days are not read. */
const WINDOWS_MS = [HOUR_MS, DAY_MS, 7 * DAY_MS, Number.POSITIVE_INFINITY]
/** The same for findings and replays, which look at more sessions than an hour usually has. */
const SELECTIVE_WINDOWS_MS = WINDOWS_MS.slice(1)
/** The sessions of one user are found by their ids, and are few. */
const USER_WINDOWS_MS = [Number.POSITIVE_INFINITY]

/** How many sessions are looked at together for findings and replays. Their ids lead to few rows, however many there are. */
const CANDIDATES = 1_000
/** How often that happens for one page. */
const ROUNDS_MAX = 10

/**
 * Returns the sessions of a page, the last seen first. There is no table of sessions: a session is seen by each of its requests,
 * and by its spans. Within a window of time these are aggregated by session. A session that was seen in the window was seen later
 * than all sessions that were not, so a page that is found in a window is complete.
 */
export async function selectSessionsPage(
  client: ClickHouseClient,
  page: SessionsPageKey,
  signal: AbortSignal,
): Promise<FoundSessions> {
  const { hasFinding, hasReplay } = page.filter
  const isSelective = hasFinding || hasReplay
  const limit = isSelective ? CANDIDATES : page.limit
  const sessions: FoundSession[] = []
  let { after } = page
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const candidates = await selectCandidates(client, { ...page, after, limit }, signal)
    sessions.push(...(await withRowsIn(client, page, candidates, signal)))
    const isAtEnd = candidates.length < limit
    if (isAtEnd || sessions.length >= page.limit) {
      return { sessions: sessions.slice(0, page.limit), searchedTo: undefined }
    }
    after = candidates.at(-1)
  }
  return { sessions, searchedTo: after }
}

/** Returns the candidates that have rows in each table which the filter requires. */
async function withRowsIn(
  client: ClickHouseClient,
  { workspaceId, filter: { hasFinding, hasReplay } }: SessionsPageKey,
  candidates: readonly FoundSession[],
  signal: AbortSignal,
): Promise<readonly FoundSession[]> {
  const tables = [...(hasFinding ? ['exceptions'] : []), ...(hasReplay ? ['replay_chunks'] : [])]
  const ids = candidates.map(({ id }) => id)
  const found = await Promise.all(tables.map(table => selectIdsIn(client, table, { workspaceId, ids }, signal)))
  return candidates.filter(({ id }) => found.every(foundIds => foundIds.has(id)))
}

const OF_SESSIONS = 'workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}'
/** Adds the sessions with a trace in which an exception occurred. */
const OF_TRACES = `
  UNION DISTINCT
  SELECT DISTINCT session_id AS id FROM session_traces
  WHERE ${OF_SESSIONS} AND trace_id IN (
    SELECT trace_id FROM exceptions
    WHERE workspace_id = {workspaceId: String} AND trace_id IN (SELECT trace_id FROM session_traces WHERE ${OF_SESSIONS}))`

/** Returns the ids of these sessions that have rows in a table. */
async function selectIdsIn(
  client: ClickHouseClient,
  table: string,
  { workspaceId, ids }: { readonly workspaceId: string; readonly ids: readonly string[] },
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (let begin = 0; begin < ids.length; ) {
    const end = endOfPart(ids, begin)
    const query = `SELECT DISTINCT session_id AS id FROM ${table} WHERE ${OF_SESSIONS}${table === 'exceptions' ? OF_TRACES : ''}`
    const params = { workspaceId, sessionIds: ids.slice(begin, end) }
    for (const { id } of await selectRows<{ id: string }>(client, { query, params, signal })) found.add(id)
    begin = end
  }
  return found
}

/** Returns the next sessions of a list in its order, before those without findings or replays are left out. */
async function selectCandidates(
  client: ClickHouseClient,
  page: SessionsPageKey,
  signal: AbortSignal,
): Promise<FoundSession[]> {
  const { filter, after, beforeMs, limit } = page
  const endMs = Math.min(Number(after?.lastMs ?? beforeMs), beforeMs)
  const earliestMs = Math.max(filter.fromMs ?? 0, 0)
  let found: FoundSession[] = []
  for (const windowMs of windowsOf(filter)) {
    const sinceMs = Math.max(endMs - windowMs, earliestMs)
    found = await selectSeenSince(client, page, sinceMs, signal)
    if (found.length === limit || sinceMs === earliestMs) break
  }
  return found
}

function windowsOf({ user, hasFinding, hasReplay }: SessionsFilter): readonly number[] {
  if (user !== undefined) return USER_WINDOWS_MS
  return hasFinding || hasReplay ? SELECTIVE_WINDOWS_MS : WINDOWS_MS
}

function selectSeenSince(
  client: ClickHouseClient,
  { workspaceId, filter, beforeMs, limit, after }: SessionsPageKey,
  sinceMs: number,
  signal: AbortSignal,
): Promise<FoundSession[]> {
  const seen = seenQuery(filter)
  const isAfter = '(lastMs, idHash) < ({lastMs: Int64}, {idHash: String})'
  const query = `
    SELECT session_id AS id, max(seenMs) AS lastMs, lower(hex(sipHash128(session_id))) AS idHash
    FROM (${seen.query})
    WHERE seenMs >= {sinceMs: Int64}
    GROUP BY session_id ${after ? `HAVING ${isAfter}` : ''}
    ORDER BY lastMs DESC, idHash DESC LIMIT {limit: UInt32}`
  const params = {
    ...seen.params,
    ...{ workspaceId, sinceMs, beforeMs, limit },
    ...{ sinceDay: dayOf(sinceMs), lastDay: dayOf(beforeMs) },
    ...(after && { lastMs: after.lastMs, idHash: after.idHash }),
  }
  return selectRows<FoundSession>(client, { query, params, signal })
}

/** Returns a query of when sessions were last seen, by each of the tables: `session_id` and `seenMs`. */
function seenQuery({ user, surfaceId, toMs }: SessionsFilter): Pick<Select, 'query' | 'params'> {
  const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
  const ofUser = `session_id IN (
    SELECT session_id FROM session_identities
    WHERE workspace_id = {workspaceId: String} AND (identifier = {user: String} OR email = {user: String}))`
  const owner = ['workspace_id = {workspaceId: String}', ...(user === undefined ? [] : [ofUser])]
  const ofSurface = surfaceId === undefined ? [] : ['surface_id = {surfaceId: String}']
  const arrived = [`received_at >= ${time('sinceMs')}`, `received_at < ${time('beforeMs')}`]
  const requests = REQUEST_TABLES.map(
    table => `
      SELECT session_id, toUnixTimestamp64Milli(max(received_at)) AS seenMs FROM ${table}
      WHERE ${[...owner, ...ofSurface, ...arrived].join(' AND ')} GROUP BY session_id`,
  )
  const started = toMs === undefined ? [] : [`${withinDay('first_start_unix_nano')} < {beforeMs: Int64}`]
  const days = ['day >= {sinceDay: Date}', 'day <= {lastDay: Date}']
  const spans = `
      SELECT session_id, least(max(${withinDay('last_end_unix_nano')}), {beforeMs: Int64} - 1) AS seenMs FROM session_traces
      WHERE ${[...owner, ...days, ...started].join(' AND ')} GROUP BY session_id`
  // Spans do not say here which surface they are from.
  const selects = surfaceId === undefined ? [...requests, spans] : requests
  return { query: selects.join(' UNION ALL '), params: { user, surfaceId } }
}

function dayOf(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(0, 10)
}

/** Tables with one row for each request that names a session. Their rows have the time of arrival and a surface. */
export const REQUEST_TABLES = ['session_identities', 'session_heartbeats', 'replay_chunks'] as const

const DAY_START_MS = 'toInt64(toUInt16(day)) * 86400000'

/**
 * Returns the time of spans of a row of `session_traces` as an expression of Unix ms. Only the day of their arrival is stored, so a
 * time by the clock of the sender counts within that day.
 */
function withinDay(unixNano: 'first_start_unix_nano' | 'last_end_unix_nano'): string {
  return `greatest(${DAY_START_MS}, least(toInt64(intDiv(${unixNano}, 1000000)), ${DAY_START_MS} + 86399999))`
}
