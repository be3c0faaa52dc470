import type { ClickHouseClient } from '../../client.ts'
import { type BoundCondition, selectRows } from '../../select.ts'
import { durationQuantile } from './duration-quantiles.ts'

/** Which minutes of which spans are counted. Times are whole minutes in Unix seconds, the end exclusive. */
export interface RatesFilter {
  readonly workspaceId: string
  readonly fromSeconds: number
  readonly toSeconds: number
  readonly serviceName?: string | undefined
  readonly surfaceId?: string | undefined
  readonly environment?: string | undefined
}

/** Spans with their failures and durations. 64-bit numbers are decimal text, durations are nanoseconds. */
export interface RatesRow {
  readonly count: string
  readonly errors: string
  readonly durationSum: string
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Rates of the spans of a service that are of a server or consumer, or of its other spans. */
export interface ServiceRow extends RatesRow {
  readonly serviceName: string
  /** 1 for spans of servers and consumers. */
  readonly isEntry: number
}

/** Rates of a step, counted from the first. */
export interface StepRow extends ServiceRow {
  readonly step: number
}

/** Rates of an operation. */
export interface OperationRow extends RatesRow {
  readonly operation: string
  readonly kind: number
  /** 32 hexadecimal digits. */
  readonly slowestTraceId: string
  readonly slowest: string
}

/** Rates of a version, and the minutes of its first and last span in Unix seconds. */
export interface VersionRow extends RatesRow {
  readonly version: string
  readonly environment: string
  readonly first: string
  readonly last: string
}

/** Kinds of spans with which requests and messages of others enter a service: server and consumer. */
export const IS_ENTRY = 'kind IN (2, 5)'
/** Rows that one read may look at: a month of 50 services with 20 operations each. */
export const ROWS_READ_MAX = 100_000_000

const COUNTS = `
  sum(span_stats.spans) AS count, sumIf(span_stats.spans, status_code = 2) AS errors,
  sum(duration_sum_nano) AS durationSum, sumMap(durations) AS buckets`
const RATES = `
  count, errors, durationSum, ${durationQuantile('buckets', 0.5)} AS p50, ${durationQuantile('buckets', 0.95)} AS p95,
  ${durationQuantile('buckets', 0.99)} AS p99`

/** Returns the conditions on workspace, service and surface of a filter, which bind its fields. */
export function conditionsOfScope({ serviceName, surfaceId }: RatesFilter): string[] {
  return [
    'workspace_id = {workspaceId: String}',
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
    ...(surfaceId === undefined ? [] : ['surface_id = {surfaceId: String}']),
  ]
}

/** Returns the condition on rows of `span_stats` or `service_edges`. Only the first have `service_name`. */
export function ratesCondition(filter: RatesFilter): BoundCondition {
  const conditions = [
    ...conditionsOfScope(filter),
    // No span arrives before it ends.
    "received_at >= toStartOfDay(fromUnixTimestamp({fromSeconds: UInt32}), 'UTC')",
    'minute >= fromUnixTimestamp({fromSeconds: UInt32}) AND minute < fromUnixTimestamp({toSeconds: UInt32})',
    ...(filter.environment === undefined ? [] : ['environment = {environment: String}']),
  ]
  return { sql: conditions.join(' AND '), params: { ...filter } }
}

async function select<T>(
  client: ClickHouseClient,
  filter: RatesFilter,
  query: (condition: string) => string,
  signal: AbortSignal,
  params: Readonly<Record<string, unknown>> = {},
): Promise<T[]> {
  const { sql, params: own } = ratesCondition(filter)
  const settings = { max_rows_to_read: String(ROWS_READ_MAX) }
  return selectRows<T>(client, { query: query(sql), params: { ...own, ...params }, signal, settings })
}

/** Returns the rates of services, with a row for entering and one for other spans of each, those with most spans first. */
export function selectServices(
  client: ClickHouseClient,
  filter: RatesFilter,
  signal: AbortSignal,
): Promise<ServiceRow[]> {
  const query = (condition: string) => `
    SELECT serviceName, isEntry, ${RATES}
    FROM (SELECT service_name AS serviceName, ${IS_ENTRY} AS isEntry, ${COUNTS}
          FROM span_stats WHERE ${condition} GROUP BY serviceName, isEntry)
    ORDER BY isEntry DESC, count DESC, serviceName`
  return select(client, filter, query, signal)
}

/** Returns the rates of some services by step. */
export function selectServiceSteps(
  client: ClickHouseClient,
  filter: RatesFilter,
  { serviceNames, stepSeconds }: { readonly serviceNames: readonly string[]; readonly stepSeconds: number },
  signal: AbortSignal,
): Promise<StepRow[]> {
  const query = (condition: string) => `
    SELECT serviceName, isEntry, step, ${RATES}
    FROM (SELECT service_name AS serviceName, ${IS_ENTRY} AS isEntry,
                 toUInt32(intDiv(toUnixTimestamp(minute) - {fromSeconds: UInt32}, {stepSeconds: UInt32})) AS step, ${COUNTS}
          FROM span_stats WHERE ${condition} AND service_name IN {serviceNames: Array(String)}
          GROUP BY serviceName, isEntry, step)`
  return select(client, filter, query, signal, { serviceNames, stepSeconds })
}

/** Returns the operations of a service, those first whose spans took most time together. */
export function selectOperations(
  client: ClickHouseClient,
  filter: RatesFilter,
  limit: number,
  signal: AbortSignal,
): Promise<OperationRow[]> {
  const query = (condition: string) => `
    SELECT operation, kind, ${RATES}, slowestSpan.1 AS slowest, lower(hex(slowestSpan.2)) AS slowestTraceId
    FROM (SELECT CAST(operation, 'String') AS operation, kind, ${COUNTS}, max(span_stats.slowest) AS slowestSpan
          FROM span_stats WHERE ${condition} GROUP BY operation, kind)
    ORDER BY durationSum DESC, operation, kind LIMIT {limit: UInt32}`
  return select(client, filter, query, signal, { limit })
}

/** Returns the versions of a service by environment, the one with the latest span first. */
export function selectVersionRates(
  client: ClickHouseClient,
  filter: RatesFilter,
  { isEntry, limit }: { readonly isEntry: boolean; readonly limit: number },
  signal: AbortSignal,
): Promise<VersionRow[]> {
  const query = (condition: string) => `
    SELECT version, environment, first, last, ${RATES}
    FROM (SELECT CAST(service_version, 'String') AS version, CAST(environment, 'String') AS environment,
                 toUnixTimestamp(min(minute)) AS first, toUnixTimestamp(max(minute)) AS last, ${COUNTS}
          FROM span_stats WHERE ${condition} ${isEntry ? `AND ${IS_ENTRY}` : ''} GROUP BY version, environment)
    ORDER BY last DESC, first DESC, version, environment LIMIT {limit: UInt32}`
  return select(client, filter, query, signal, { limit })
}

/** The version of a service that began last, and the minute of its first span in Unix seconds. */
export interface LastReleaseRow {
  readonly serviceName: string
  readonly version: string
  readonly at: number
}

/**
 * Returns the version of each of these services that began last, if it began in the range of the filter after a span of another
 * version.
 */
export function selectLastReleases(
  client: ClickHouseClient,
  filter: RatesFilter,
  serviceNames: readonly string[],
  signal: AbortSignal,
): Promise<LastReleaseRow[]> {
  const query = (condition: string) => `
    SELECT serviceName, argMax(version, (first, version)) AS version, toUInt32(max(first)) AS at
    FROM (SELECT toString(service_name) AS serviceName, toString(service_version) AS version, toUnixTimestamp(min(minute)) AS first
          FROM span_stats WHERE ${condition} AND service_name IN {serviceNames: Array(String)} AND service_version != ''
          GROUP BY serviceName, version)
    GROUP BY serviceName HAVING min(first) < max(first)`
  return select(client, filter, query, signal, { serviceNames })
}

/** Returns the rates of services in a time of the same length before each of these releases. */
export function selectServicesBefore(
  client: ClickHouseClient,
  filter: RatesFilter,
  { releases, seconds }: { readonly releases: readonly LastReleaseRow[]; readonly seconds: number },
  signal: AbortSignal,
): Promise<ServiceRow[]> {
  const begin = 'transform(toString(service_name), {serviceNames: Array(String)}, {starts: Array(UInt32)}, toUInt32(0))'
  const query = (condition: string) => `
    SELECT serviceName, isEntry, ${RATES}
    FROM (SELECT toString(service_name) AS serviceName, ${IS_ENTRY} AS isEntry, ${COUNTS}
          FROM span_stats
          WHERE ${condition} AND service_name IN {serviceNames: Array(String)}
            AND toUnixTimestamp(minute) < ${begin} AND toUnixTimestamp(minute) >= ${begin} - {seconds: UInt32}
          GROUP BY serviceName, isEntry)`
  const serviceNames = releases.map(({ serviceName }) => serviceName)
  return select(client, filter, query, signal, { serviceNames, starts: releases.map(({ at }) => at), seconds })
}
