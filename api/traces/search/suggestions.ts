import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  selectServices,
  selectTagKeys,
  selectTagValues,
} from '../../../clickhouse/queries/traces/search/select-tags.ts'
import {
  listSuggestions,
  listSuggestionsQuerySchema,
  type Suggestions,
} from '../../../schemas/http/traces/suggestions.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { unixNanoOf } from '../../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { TRACES } from '../../http/resource.ts'
import { SPAN_NANO_MAX, searchRange } from './search-filter.ts'
import { recentTraces, runTraceSearch } from './search-traces.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for searches of traces. */
  readonly traceSearches: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Returns the route that suggests texts for the filters of traces (docs/api/traces.md#suggestions). */
export function suggestionsRoute({ clickhouse, traceSearches, now, ...deps }: Deps): Route {
  return guardedRoute(deps, listSuggestions, {
    resource: TRACES,
    query: listSuggestionsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<Suggestions>> {
      const { of, key, contains, service, from, to, limit } = query
      const nano = (time: string | undefined) => (time === undefined ? undefined : unixNanoOf(time, SPAN_NANO_MAX))
      const range = searchRange(nano(from), nano(to))
      const nowMs = now()
      const read = async () => {
        if (of === 'service')
          return selectServices(clickhouse, { workspaceId, ...range, contains, limit, nowMs }, deadline)
        const traceIds = await recentTraces(clickhouse, { workspaceId, service, range, nowMs }, deadline)
        const source = { workspaceId, traceIds, contains, limit, serviceName: service }
        if (of === 'key') return selectTagKeys(clickhouse, source, deadline)
        return selectTagValues(clickhouse, { ...source, key: of === 'value' ? key : undefined }, deadline)
      }
      const found = await runTraceSearch(traceSearches, { workspaceId, deadline }, ['from', 'to'], read)
      return found.ok ? { ok: true, value: { suggestions: found.value } } : found
    },
  })
}
