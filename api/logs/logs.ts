import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LogsFilter, SearchLimits } from '../../clickhouse/queries/logs/logs-filter.ts'
import { type LogCount, selectLogCounts, selectLogExtent } from '../../clickhouse/queries/logs/select-log-counts.ts'
import type { LogRow } from '../../clickhouse/queries/logs/select-logs.ts'
import type { TimeSteps } from '../../clickhouse/select.ts'
import {
  HISTOGRAM_STEPS_MAX,
  type ListLogsQuery,
  type LogHistogram,
  type LogRecord,
  type LogsPage,
  listLogs,
  listLogsQuerySchema,
  logHistogramQuerySchema,
  readLogHistogram,
  SEVERITIES,
} from '../../schemas/http/logs.ts'
import type { Route } from '../../shared/http/route.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { presentAttributes, presentScope } from '../http/present-attributes.ts'
import { divideTime } from '../http/time-steps.ts'
import { loadLogs } from './load-logs.ts'
import { decodeLogCursor, encodeLogCursor } from './log-cursor.ts'
import { filterOf, LOGS, type LogSearchDeps, runSearch, searchedTime } from './log-search.ts'

/** Returns the routes of log records (docs/api/logs.md#logs). */
export function logRoutes(deps: LogSearchDeps): Route[] {
  return [listLogsRoute(deps), readLogHistogramRoute(deps)]
}

/** Returns the route that lists the log records of a workspace, the newest first (docs/api/logs.md#logs). */
function listLogsRoute(deps: LogSearchDeps): Route {
  return guardedRoute(deps, listLogs, {
    resource: LOGS,
    query: listLogsQuerySchema,
    run: request => readLogsPage(deps, request),
  })
}

/** Reads a page of log records. */
export async function readLogsPage(
  deps: Omit<LogSearchDeps, keyof GuardedRouteDeps>,
  { workspaceId, query, deadline }: CallerRead<ListLogsQuery>,
): Promise<Outcome<LogsPage>> {
  const { limit, cursor, ...conditions } = query
  const list = ['logs', workspaceId, Object.entries(conditions).sort(([a], [b]) => (a < b ? -1 : 1))]
  const after = decodeLogCursor(list, cursor, conditions.trace !== undefined)
  if (!after.ok) return after
  // All pages of a list have the time of the first.
  const time = after.value ? { ok: true as const, value: after.value.time } : searchedTime(conditions, deps.now())
  if (!time.ok) return time
  const filter = filterOf(workspaceId, conditions, time.value)
  const search = { filter, after: after.value, limit }
  return runSearch(
    deps,
    workspaceId,
    async limits => {
      const { rows, isCut, reached } = await loadLogs(deps.clickhouse, search, limits, deadline)
      const { fromMs, toMs } = time.value
      return {
        ok: true,
        value: {
          ...(fromMs !== undefined && { from: rfc3339FromUnixMs(fromMs) }),
          ...(toMs !== undefined && { to: rfc3339FromUnixMs(toMs) }),
          logs: rows.map(row => presentLog(row, isCut)),
          nextCursor: reached ? encodeLogCursor(list, { ...reached, time: time.value }) : null,
        },
      }
    },
    deadline,
  )
}

/** Returns the route that counts the log records of a workspace over time (docs/api/logs.md#logs). */
function readLogHistogramRoute(deps: LogSearchDeps): Route {
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

const ABSENT_ID = /^0+$/

/** Returns a log record as a response shows it (docs/api/logs.md#logs). */
function presentLog(row: LogRow, isCut: boolean): LogRecord {
  return {
    timestamp: rfc3339FromUnixNano(BigInt(row.nanos)),
    timeUnixNano: row.timeUnixNano,
    observedTimeUnixNano: row.observedTimeUnixNano,
    receivedAt: rfc3339FromUnixMs(Number(row.receivedMs)),
    surfaceId: row.surfaceId,
    serviceName: row.serviceName,
    serviceVersion: row.serviceVersion,
    severity: SEVERITIES[Math.min(Math.ceil(row.severityNumber / 4), SEVERITIES.length - 1)] ?? SEVERITIES[0],
    severityNumber: row.severityNumber,
    severityText: row.severityText,
    body: row.bodyText,
    bodyType: row.bodyType,
    ...(row.eventName !== '' && { eventName: row.eventName }),
    ...(!ABSENT_ID.test(row.traceId) && { traceId: row.traceId }),
    ...(!ABSENT_ID.test(row.spanId) && { spanId: row.spanId }),
    ...(row.sessionId !== '' && { sessionId: row.sessionId }),
    flags: row.flags,
    attributes: presentAttributes(row.attributeColumns),
    droppedAttributesCount: row.droppedAttributesCount,
    ...presentScope(row),
    ...(isCut && { isCut }),
  }
}

/** Divides the time of a histogram into steps (`divideTime`). Refuses a length of which there would be too many. */
export function chooseSteps(fromMs: number, toMs: number, stepSeconds?: number): Outcome<TimeSteps> {
  const steps = divideTime(fromMs, toMs, stepSeconds)
  if (steps.count <= HISTOGRAM_STEPS_MAX) return { ok: true, value: steps }
  const least = Math.ceil((toMs - fromMs) / 1_000 / (HISTOGRAM_STEPS_MAX - 1))
  return invalid(`step must be at least ${least} for this time, because there are at most ${HISTOGRAM_STEPS_MAX} steps`)
}
