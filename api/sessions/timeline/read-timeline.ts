import type { z } from 'zod'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { UNIX_NANO_MAX } from '../../../clickhouse/queries/sessions/timeline/select-timeline.ts'
import { readTimeline } from '../../../schemas/http/sessions/operations.ts'
import { sessionIdSchema } from '../../../schemas/http/sessions/schemas.ts'
import { readTimelineQuerySchema, TIMELINE_KINDS, type TimelinePage } from '../../../schemas/http/sessions/timeline.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { unixNanoOf } from '../../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { notFound, SESSIONS } from '../../http/resource.ts'
import { loadTimeline } from './load-timeline.ts'
import { decodeTimelineCursor, encodeTimelineCursor } from './timeline-cursor.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for the queries of a page. */
  readonly sessionReads: Pick<FairSlots, 'run'>
}

/** Returns the route that reads everything of a session on one clock, the oldest first (docs/api/sessions.md#session-timeline). */
export function readTimelineRoute(deps: Deps): Route {
  return guardedRoute(deps, readTimeline, {
    resource: SESSIONS,
    query: readTimelineQuerySchema,
    run: ({ param, ...request }) => readTimelinePage(deps, request, param('sessionId')),
  })
}

/** Reads a page of the timeline of a session. */
export async function readTimelinePage(
  { clickhouse, sessionReads }: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query, deadline }: CallerRead<z.infer<typeof readTimelineQuerySchema>>,
  sessionId: string,
): Promise<Outcome<TimelinePage>> {
  const { limit, cursor, kinds = TIMELINE_KINDS, from, to } = query
  const since = from === undefined ? 0n : unixNanoOf(from, UNIX_NANO_MAX)
  const until = to === undefined ? UNIX_NANO_MAX : unixNanoOf(to, UNIX_NANO_MAX) - 1n
  const list = ['timeline', workspaceId, sessionId, kinds, String(since), String(until)]
  const after = decodeTimelineCursor(list, cursor)
  if (!after.ok) return after
  if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
  const search = { workspaceId, sessionId, kinds, since, until, after: after.value, limit }
  const load = () => loadTimeline(clickhouse, search, deadline)
  const timeline = await sessionReads.run(workspaceId, load, deadline)
  if (timeline === undefined) return notFound(SESSIONS)
  const { entries, reached } = timeline
  return {
    ok: true,
    value: {
      entries: [...entries],
      nextCursor: reached === undefined ? null : encodeTimelineCursor(list, reached),
    },
  }
}
