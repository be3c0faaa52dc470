import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  type SessionPosition,
  type SessionsFilter,
  selectSessionsPage,
} from '../../../clickhouse/queries/sessions/list/select-sessions-page.ts'
import { listSessions } from '../../../schemas/http/sessions/operations.ts'
import {
  type ListSessionsQuery,
  listSessionsQuerySchema,
  type SessionsPage,
} from '../../../schemas/http/sessions/schemas.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { cutPage } from '../../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { SESSIONS } from '../../http/resource.ts'
import { loadListedSessions } from './load-listed-sessions.ts'
import { decodeSessionCursor, encodeSessionCursor } from './session-cursor.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for the queries that search for a page. */
  readonly sessionReads: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Returns the route that lists the sessions of a workspace, the last seen first (docs/api/sessions.md#session-list). */
export function listSessionsRoute(deps: Deps): Route {
  const { clickhouse, sessionReads, now } = deps
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
      const value = {
        sessions: await loadListedSessions(clickhouse, key, now(), deadline),
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
