import { z } from 'zod'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import { selectUsage } from '../clickhouse/queries/select-usage.ts'
import {
  type KeyUsageAnswer,
  keyUsageQuerySchema,
  listKeyUsage,
  listUsage,
  USAGE_DAYS_MAX,
  type UsageAnswer,
  usageQuerySchema,
} from '../schemas/http/usage.ts'
import type { Route } from '../shared/http/route.ts'
import type { KeyUsage } from '../shared/queue/key-usage.ts'
import { cutPage, decodeCursor, encodeCursor } from './http/cursor.ts'
import { queryDirectory } from './http/directory.ts'
import { dayOf, dayText } from './http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome } from './http/outcome.ts'
import type { Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly keyUsage: (workspaceId: string, day: number) => Promise<KeyUsage[]>
  readonly now: () => number
}

/** Returns the routes of the usage of a workspace (docs/api/workspaces.md#usage). */
export function usageRoutes(deps: Deps): Route[] {
  return [listUsageRoute(deps), listKeyUsageRoute(deps)]
}

/** The usage of a workspace. */
const USAGE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the usage is unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

const DEFAULT_DAYS = 7
const TOO_LONG = invalid(`from must be at most ${USAGE_DAYS_MAX - 1} days before to`)
const UNORDERED = invalid('from must not be after to')

const usageCursorSchema = z
  .tuple([z.iso.date(), z.string().max(200), z.string().max(64)])
  .transform(([day, surfaceId, signal]) => ({ day, surfaceId, signal }))

/** Returns the route that lists what the surfaces of a workspace have sent by day (docs/api/workspaces.md#usage). */
function listUsageRoute(deps: Deps): Route {
  return guardedRoute(deps, listUsage, {
    resource: USAGE,
    query: usageQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<UsageAnswer>> {
      const { limit, cursor } = query
      const after = decodeCursor(usageCursorSchema, cursor)
      if (!after.ok) return after
      const last = dayOf(query.to ?? deps.now())
      const first = query.from === undefined ? last - DEFAULT_DAYS + 1 : dayOf(query.from)
      if (first > last) return UNORDERED
      if (last - first >= USAGE_DAYS_MAX) return TOO_LONG
      const days = { from: dayText(first), to: dayText(last) }
      const page = { workspaceId, ...days, limit: limit + 1, after: after.value }
      const rows = await selectUsage(deps.clickhouse, page, deadline)
      const { shown, nextCursor } = cutPage(rows, limit, row => encodeCursor([row.day, row.surfaceId, row.signal]))
      const usage = shown.map(({ day, surfaceId, signal, requests, bytes, records, scrubbed, dropped }) => ({
        ...{ day, surfaceId, kind: signal },
        ...{ requests: Number(requests), bytes: Number(bytes), records: Number(records) },
        scrubbed: byRule(scrubbed).map(([rule, values]) => ({ rule, values })),
        dropped: byRule(dropped).map(([rule, count]) => ({ rule, count })),
      }))
      return { ok: true, value: { usage, nextCursor } }
    },
  })
}

const keyUsageCursorSchema = z.tuple([z.string().regex(/^key_[0-9a-z]{1,64}$/)])

/** Returns the route that lists the requests of the public keys of a workspace on a day (docs/api/workspaces.md#usage). */
function listKeyUsageRoute(deps: Deps): Route {
  return guardedRoute(deps, listKeyUsage, {
    resource: USAGE,
    query: keyUsageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<KeyUsageAnswer>> {
      const { limit, cursor } = query
      const after = decodeCursor(keyUsageCursorSchema, cursor)
      if (!after.ok) return after
      const day = dayOf(query.day ?? deps.now())
      const all = await queryDirectory(deps.keyUsage(workspaceId, day))
      const from = after.value?.[0] ?? ''
      const found = all.filter(({ keyId }) => keyId > from).slice(0, limit + 1)
      const { shown, nextCursor } = cutPage(found, limit, ({ keyId }) => encodeCursor([keyId]))
      const keys = shown.map(({ keyId: id, requests, bytes }) => ({ id, requests, bytes }))
      return { ok: true, value: { day: dayText(day), keys, nextCursor } }
    },
  })
}

/** Returns counts by the name of their rule, in the order of the names. */
function byRule(counts: Readonly<Record<string, string>>): [string, number][] {
  return Object.keys(counts)
    .sort()
    .map(rule => [rule, Number(counts[rule])])
}
