import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type SessionFindingsRow,
  type SessionRequestsRow,
  type SessionSpansRow,
  type SessionsKey,
  type SessionUserRow,
  selectSessionFindingCounts,
  selectSessionRequests,
  selectSessionSpans,
  selectSessionUsers,
} from '../../clickhouse/queries/sessions/select-listed-sessions.ts'
import {
  type SessionPosition,
  type SessionsFilter,
  selectSessionsPage,
} from '../../clickhouse/queries/sessions/select-sessions-page.ts'
import { endOfPart } from '../../clickhouse/queries/sessions/session-key.ts'
import { listSessions } from '../../schemas/http/sessions/operations.ts'
import {
  LISTED_SURFACES_MAX,
  LISTED_TEXT_MAX,
  type ListedSession,
  type ListSessionsQuery,
  listSessionsQuerySchema,
  type SessionsPage,
} from '../../schemas/http/sessions/schemas.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { FindingMerges } from '../../shared/directory/findings/finding-merges.ts'
import type { Route } from '../../shared/http/route.ts'
import {
  cutPage,
  decodeCursor,
  digestOf,
  encodeCursor,
  INVALID_CURSOR,
  type ListIdentity,
  OTHER_LIST,
} from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { SESSIONS } from '../http/resource.ts'
import { sessionTimes } from './session-times.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges'>
  /** Slots for the queries that search for a page. */
  readonly sessionReads: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Returns the route that lists the sessions of a workspace, the last seen first (docs/api/sessions.md#session-list). */
export function listSessionsRoute(deps: Deps): Route {
  const { clickhouse, directory, sessionReads, now } = deps
  return guardedRoute(deps, listSessions, {
    resource: SESSIONS,
    query: listSessionsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<SessionsPage>> {
      const { limit, cursor, ...conditions } = query
      const filter = filterOf(conditions)
      const list = ['sessions', workspaceId, Object.entries(filter)]
      const after = decodeSessionCursor(list, cursor, now())
      if (!after.ok) return after
      const beforeMs = Math.min(after.value?.beforeMs ?? now() + 1, filter.toMs ?? Number.POSITIVE_INFINITY)
      const page = { workspaceId, filter, beforeMs, limit: limit + 1, after: after.value?.last }
      const search = () => selectSessionsPage(clickhouse, page, deadline)
      const { sessions, searchedTo } = await sessionReads.run(workspaceId, search, deadline)
      const cursorOf = (last: SessionPosition) => encodeSessionCursor(list, { last, beforeMs })
      const { shown, nextCursor } = cutPage(sessions, limit, cursorOf)
      const key = { workspaceId, sessionIds: shown.map(({ id }) => id) }
      const merges = await queryDirectory(directory.findingMerges(workspaceId))
      const value = {
        sessions: await loadListedSessions(clickhouse, key, merges, now(), deadline),
        nextCursor: nextCursor ?? (searchedTo === undefined ? null : cursorOf(searchedTo)),
      }
      return { ok: true, value }
    },
  })
}

function filterOf(query: Omit<ListSessionsQuery, 'limit' | 'cursor'>): SessionsFilter {
  const { user, surface, hasFinding, hasReplay, from, to } = query
  return {
    user,
    surfaceId: surface,
    hasFinding: hasFinding === 'true',
    hasReplay: hasReplay === 'true',
    fromMs: from === undefined ? undefined : timeOf(from),
    toMs: to === undefined ? undefined : timeOf(to),
  }
}

/** Bounds within the range of ClickHouse's dates. */
const MAX_MS = Date.UTC(2100, 0, 1)

function timeOf(time: string): number {
  return Math.min(Math.max(Date.parse(time), 0), MAX_MS)
}

/** Loads what a list shows of these sessions, in their order. Leaves out those of which nothing is retained any more. */
async function loadListedSessions(
  client: ClickHouseClient,
  { workspaceId, sessionIds }: SessionsKey,
  merges: FindingMerges,
  nowMs: number,
  signal: AbortSignal,
): Promise<ListedSession[]> {
  const listed: ListedSession[] = []
  for (let begin = 0; begin < sessionIds.length; ) {
    const end = endOfPart(sessionIds, begin)
    const key = { workspaceId, sessionIds: sessionIds.slice(begin, end) }
    listed.push(...(await loadPart(client, key, merges, nowMs, signal)))
    begin = end
  }
  return listed
}

async function loadPart(
  client: ClickHouseClient,
  key: SessionsKey,
  merges: FindingMerges,
  nowMs: number,
  signal: AbortSignal,
): Promise<ListedSession[]> {
  const [requests, users, spans, findings] = await Promise.all([
    selectSessionRequests(client, key, { surfaces: LISTED_SURFACES_MAX }, signal).then(byId),
    selectSessionUsers(client, key, { textCharacters: LISTED_TEXT_MAX }, signal).then(byId),
    selectSessionSpans(client, key, signal).then(byId),
    selectSessionFindingCounts(client, key, merges, signal).then(byId),
  ])
  return key.sessionIds.flatMap(id => {
    const ofRequests = requests.get(id)
    const ofSpans = spans.get(id)
    const times = sessionTimes(ofRequests, ofSpans, nowMs)
    if (times === undefined) return []
    return [
      { id, ...times, ...presentCounts(ofRequests, ofSpans, findings.get(id)), identity: presentUser(users.get(id)) },
    ]
  })
}

function byId<R extends { readonly id: string }>(rows: readonly R[]): ReadonlyMap<string, R> {
  return new Map(rows.map(row => [row.id, row]))
}

function presentCounts(
  requests: SessionRequestsRow | undefined,
  spans: SessionSpansRow | undefined,
  findings: SessionFindingsRow | undefined,
): Omit<ListedSession, 'id' | 'firstSeenAt' | 'lastSeenAt' | 'timesOfArrival' | 'identity'> {
  return {
    surfaceIds: [...(requests?.surfaceIds ?? [])],
    traceCount: Number(spans?.traceCount ?? 0),
    errorCount: Number(spans?.errorCount ?? 0),
    findingCount: Number(findings?.findingCount ?? 0),
    replayChunkCount: Number(requests?.replayChunkCount ?? 0),
  }
}

function presentUser(row: SessionUserRow | undefined): ListedSession['identity'] {
  if (row === undefined) return null
  return {
    identifier: row.identifier,
    ...(row.name && { name: row.name }),
    ...(row.email && { email: row.email }),
  }
}

/** A cursor of a list of sessions. */
interface SessionCursor {
  /** The last session of the page. */
  readonly last: SessionPosition
  /** Requests of this time or later do not count on any page, Unix ms. */
  readonly beforeMs: number
}

/** How far the clock of another process of the API may be ahead of that of this one. */
const CLOCK_DIFFERENCE_MS = HOUR_MS

const cursorSchema = z
  .tuple([
    z.string(),
    z.string().regex(/^\d{1,15}$/),
    z.string().regex(/^[0-9a-f]{32}$/),
    z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  ])
  .transform(([list, lastMs, idHash, beforeMs]) => ({ list, last: { lastMs, idHash }, beforeMs }))

/** Encodes a cursor of the list. */
function encodeSessionCursor(list: ListIdentity, { last, beforeMs }: SessionCursor): string {
  return encodeCursor([digestOf(list), last.lastMs, last.idHash, beforeMs])
}

/** Decodes a cursor, and refuses one that another list has returned or whose list begins in the future. */
function decodeSessionCursor(
  list: ListIdentity,
  text: string | undefined,
  nowMs: number,
): Outcome<SessionCursor | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  if (cursor.value.list !== digestOf(list)) return OTHER_LIST
  if (cursor.value.beforeMs > nowMs + CLOCK_DIFFERENCE_MS) return INVALID_CURSOR
  return cursor
}
