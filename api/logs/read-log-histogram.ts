import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LogsFilter, SearchLimits } from '../../clickhouse/queries/logs/logs-filter.ts'
import { type LogCount, selectLogCounts, selectLogExtent } from '../../clickhouse/queries/logs/select-log-counts.ts'
import type { TimeSteps } from '../../clickhouse/select.ts'
import { type LogHistogram, logHistogramQuerySchema, readLogHistogram, SEVERITIES } from '../../schemas/http/logs.ts'
import type { Route } from '../../shared/http/route.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { chooseSteps } from './choose-steps.ts'
import { filterOf, LOGS, type LogSearchDeps, runSearch, searchedTime } from './log-search.ts'

/** Returns the route that counts the log records of a workspace over time (docs/api/logs.md#logs). */
export function readLogHistogramRoute(deps: LogSearchDeps): Route {
  return guardedRoute(deps, readLogHistogram, {
    resource: LOGS,
    query: logHistogramQuerySchema,
    async run({ workspaceId, query: { step, ...conditions }, deadline }): Promise<Outcome<LogHistogram>> {
      const time = searchedTime(conditions, deps.now())
      if (!time.ok) return time
      const filter = filterOf(workspaceId, conditions, time.value)
      const count = async (limits: SearchLimits): Promise<Outcome<LogHistogram>> => {
        const { fromMs, toMs } = await boundsOf(deps.clickhouse, filter, deps.now(), limits, deadline)
        const steps = chooseSteps(fromMs, toMs, step)
        if (!steps.ok) return steps
        const found = await selectLogCounts(deps.clickhouse, filter, steps.value, limits, deadline)
        return { ok: true, value: histogramOf({ fromMs, toMs }, steps.value, found) }
      }
      return runSearch(deps, workspaceId, count, deadline)
    },
  })
}

interface Bounds {
  readonly fromMs: number
  readonly toMs: number
}

/** Returns the time of a search. Where that of a trace is open, its first and its last record bound it. */
async function boundsOf(
  client: ClickHouseClient,
  filter: LogsFilter,
  nowMs: number,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<Bounds> {
  const { fromMs, toMs } = filter
  if (fromMs !== undefined && toMs !== undefined) return { fromMs, toMs }
  const { firstMs, lastMs } = (await selectLogExtent(client, filter, limits, signal)) ?? {
    firstMs: toMs ?? fromMs ?? nowMs,
    lastMs: fromMs ?? toMs ?? nowMs,
  }
  return { fromMs: fromMs ?? firstMs, toMs: toMs ?? lastMs + 1 }
}

function histogramOf({ fromMs, toMs }: Bounds, steps: TimeSteps, found: readonly LogCount[]): LogHistogram {
  const series = SEVERITIES.map(() => new Array<number>(steps.count).fill(0))
  let total = 0
  for (const { step, severity, total: ofStep } of found) {
    const counts = series[severity]
    // A record that arrived after the bounds of its trace were read.
    if (counts === undefined || step >= steps.count) continue
    counts[step] = Number(ofStep)
    total += Number(ofStep)
  }
  const counts = Object.fromEntries(SEVERITIES.map((severity, i) => [severity, series[i]]))
  return {
    from: rfc3339FromUnixMs(fromMs),
    to: rfc3339FromUnixMs(toMs),
    startsAt: rfc3339FromUnixMs(steps.startMs),
    stepSeconds: steps.stepMs / 1_000,
    total,
    counts: counts as LogHistogram['counts'],
  }
}
