import { type ClickHouseClient, readsTooMuch } from '../../clickhouse/client.ts'
import { type LogsFilter, type SearchLimits, TIME_MAX_MS } from '../../clickhouse/queries/logs/logs-filter.ts'
import { LOG_SEARCH_DAYS, type LogsQuery, SEVERITY_LEVELS } from '../../schemas/http/logs.ts'
import { attributeConditionsOf } from '../../schemas/http/traces/where.ts'
import { DAY_MS, GIB, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { GuardedRouteDeps } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'

/** Dependencies of searches of log records. */
export interface LogSearchDeps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Most stored records that one query of a search reads. */
  readonly logSearchRows: number
  /** Slots for searches of logs. */
  readonly logSearches: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Log records. */
export const LOGS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'log records are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** The time of a search, in Unix ms. Undefined is without a bound, which only the search of a trace may be. */
export interface SearchedTime {
  /** Inclusive. */
  readonly fromMs: number | undefined
  /** Exclusive. */
  readonly toMs: number | undefined
}

/** How far the clock of a sender may be ahead without its newest records missing in a search until now. */
const AHEAD_MS = 5 * MINUTE_MS

/** Returns the time that a query searches: unless it names a trace, the last hour where it leaves the time open. */
export function searchedTime({ trace, from, to }: LogsQuery, nowMs: number): Outcome<SearchedTime> {
  const [givenFromMs, givenToMs] = [unixMs(from), unixMs(to)]
  if (trace !== undefined) return { ok: true, value: { fromMs: givenFromMs, toMs: givenToMs } }
  const toMs = givenToMs ?? nowMs + AHEAD_MS
  const fromMs = givenFromMs ?? Math.max((givenToMs ?? nowMs) - HOUR_MS, 0)
  if (fromMs > toMs) return invalid('from must be before "to", which is five minutes from now if absent')
  if (isSearchable({ fromMs, toMs })) return { ok: true, value: { fromMs, toMs } }
  return invalid(`from must be at most ${LOG_SEARCH_DAYS} days before "to", unless the search names a "trace"`)
}

/** Returns whether a search that names no trace may have this time. */
export function isSearchable({ fromMs, toMs }: SearchedTime): boolean {
  if (fromMs === undefined || toMs === undefined) return false
  return fromMs <= toMs && toMs - fromMs <= LOG_SEARCH_DAYS * DAY_MS
}

/** Returns a time within those that a record can have. */
function unixMs(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Math.min(Math.max(Date.parse(time), 0), TIME_MAX_MS)
}

/** Returns the filter of a query. */
export function filterOf(workspaceId: string, query: LogsQuery, { fromMs, toMs }: SearchedTime): LogsFilter {
  const { trace, span, session, service, severity, q = [], receivedFrom } = query
  return {
    workspaceId,
    traceId: trace,
    spanId: span,
    sessionId: session,
    serviceName: service,
    minSeverityNumber: severity === undefined ? undefined : SEVERITY_LEVELS.indexOf(severity) * 4 + 1,
    words: q,
    attributes: attributeConditionsOf(query),
    fromMs,
    toMs,
    receivedFromMs: unixMs(receivedFrom),
  }
}

/** The bodies that a search for a word reads are most of its bytes. */
const SEARCH_BYTES = 4 * GIB

/** Runs a search in a slot of its workspace, and refuses one that reads too much. */
export async function runSearch<T>(
  { logSearches, logSearchRows }: Pick<LogSearchDeps, 'logSearches' | 'logSearchRows'>,
  workspaceId: string,
  search: (limits: SearchLimits) => Promise<Outcome<T>>,
  signal: AbortSignal,
): Promise<Outcome<T>> {
  try {
    const limits = { rows: logSearchRows, bytes: SEARCH_BYTES }
    return await logSearches.run(workspaceId, () => search(limits), signal)
  } catch (error) {
    if (!readsTooMuch(error)) throw error
    return invalid(
      `the search would read more than ${logSearchRows} records or 4 GiB: choose a shorter time by "from" and "to", or name a "service" or a "trace"`,
    )
  }
}
