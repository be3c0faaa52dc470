import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectUsage } from '../../clickhouse/queries/usage/select-usage.ts'
import { listUsage, USAGE_DAYS_MAX, type UsageAnswer, usageQuerySchema } from '../../schemas/http/usage.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage, decodeCursor, encodeCursor } from '../http/cursor.ts'
import { dayOf, dayText } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { USAGE } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
}

const DEFAULT_DAYS = 7
const TOO_LONG = invalid(`from must be at most ${USAGE_DAYS_MAX - 1} days before to`)
const UNORDERED = invalid('from must not be after to')

const cursorSchema = z
  .tuple([z.iso.date(), z.string().max(200), z.string().max(64)])
  .transform(([day, surfaceId, signal]) => ({ day, surfaceId, signal }))

/** Returns the route that lists what the surfaces of a workspace have sent by day (docs/api/workspaces.md#usage). */
export function listUsageRoute(deps: Deps): Route {
  return guardedRoute(deps, listUsage, {
    resource: USAGE,
    query: usageQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<UsageAnswer>> {
      const { limit, cursor } = query
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      const last = dayOf(query.to ?? deps.now())
      const first = query.from === undefined ? last - DEFAULT_DAYS + 1 : dayOf(query.from)
      if (first > last) return UNORDERED
      if (last - first >= USAGE_DAYS_MAX) return TOO_LONG
      const days = { from: dayText(first), to: dayText(last) }
      const page = { workspaceId, ...days, limit: limit + 1, after: after.value }
      const rows = await selectUsage(deps.clickhouse, page, deadline)
      const { shown, nextCursor } = cutPage(rows, limit, row => encodeCursor([row.day, row.surfaceId, row.signal]))
      const usage = shown.map(({ day, surfaceId, signal, requests, bytes, records }) => ({
        ...{ day, surfaceId, kind: signal },
        ...{ requests: Number(requests), bytes: Number(bytes), records: Number(records) },
      }))
      return { ok: true, value: { usage, nextCursor } }
    },
  })
}
