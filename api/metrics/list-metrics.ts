import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type MetricDetailsRow, selectMetricDetails } from '../../clickhouse/queries/metrics/select-metric-kinds.ts'
import { selectMetricNames } from '../../clickhouse/queries/metrics/select-metric-names.ts'
import {
  LABEL_KEYS_MAX,
  listMetrics,
  listMetricsQuerySchema,
  type Metric,
  type MetricsPage,
} from '../../schemas/http/metrics.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor, INVALID_CURSOR, OTHER_LIST } from '../http/cursor.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { presentKind } from './kinds.ts'
import { METRICS, type MetricReads, readWithinLimits } from './resource.ts'
import { inNanos, timeRange } from './time-range.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly metricReads: MetricReads
  readonly now: () => number
}

/** All pages of a list have the range of its first one. */
const cursorSchema = z
  .tuple([
    z.string(),
    z.iso.datetime(),
    z.iso.datetime(),
    z.string().regex(/^(?:[0-9a-f]{2}){0,128}$/),
    z.string().regex(/^[0-9a-f]{32}$/),
  ])
  .transform(([list, from, to, nameStart, nameHash]) => ({ list, range: { from, to }, last: { nameStart, nameHash } }))

/** Returns the route that lists the metrics of a workspace by name (docs/api/metrics.md#metrics). */
export function listMetricsRoute(deps: Deps): Route {
  const { clickhouse } = deps
  return guardedRoute(deps, listMetrics, {
    resource: METRICS,
    query: listMetricsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<MetricsPage>> {
      const { limit, cursor, surface, service, prefix, from, to } = query
      const list = ['metrics', workspaceId, surface, service, prefix, from, to]
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      if (after.value && after.value.list !== digestOf(list)) return OTHER_LIST
      const range = timeRange(after.value?.range ?? query, deps.now())
      if (!range.ok) return after.value ? INVALID_CURSOR : range
      const filter = { workspaceId, surfaceId: surface, serviceName: service, ...inNanos(range.value) }
      const advice = 'request a shorter range, fewer entries or one service'
      return readWithinLimits(deps.metricReads, { workspaceId, deadline }, advice, async () => {
        const page = { filter, prefix, after: after.value?.last, limit: limit + 1 }
        const found = await selectMetricNames(clickhouse, page, deadline)
        const times = [range.value.fromMs, range.value.toMs].map(ms => new Date(ms).toISOString())
        const { shown, nextCursor } = cutPage(found, limit, ({ nameStart, nameHash }) =>
          encodeCursor([digestOf(list), ...times, nameStart, nameHash]),
        )
        const names = shown.map(({ name }) => name)
        const rows = names.length === 0 ? [] : await selectMetricDetails(clickhouse, filter, names, deadline)
        return { ok: true, value: { metrics: names.flatMap(name => presentMetric(name, rows)), nextCursor } }
      })
    },
  })
}

/** Returns a metric by the rows of its kinds, or nothing if its points have expired between the two queries. */
function presentMetric(name: string, rows: readonly MetricDetailsRow[]): Metric[] {
  const kinds = rows.filter(row => row.name === name)
  const [newest] = kinds
  if (newest === undefined) return []
  const labels = [...new Set(kinds.flatMap(kind => kind.labels))].sort()
  return [
    {
      name,
      description: newest.description,
      kinds: kinds.map(presentKind),
      labels: labels.slice(0, LABEL_KEYS_MAX),
      lastPointAt: rfc3339FromUnixNano(BigInt(newest.lastNano)),
    },
  ]
}
