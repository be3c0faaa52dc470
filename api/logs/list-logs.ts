import { type ListLogsQuery, type LogsPage, listLogs, listLogsQuerySchema } from '../../schemas/http/logs.ts'
import type { Route } from '../../shared/http/route.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { loadLogs } from './load-logs.ts'
import { decodeLogCursor, encodeLogCursor } from './log-cursor.ts'
import { filterOf, LOGS, type LogSearchDeps, runSearch, searchedTime } from './log-search.ts'
import { presentLog } from './present-log.ts'

/** Returns the route that lists the log records of a workspace, the newest first (docs/api/logs.md#logs). */
export function listLogsRoute(deps: LogSearchDeps): Route {
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
