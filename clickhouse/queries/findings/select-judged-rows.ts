import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectBytes, selectRows } from '../../select.ts'
import { ExceptionsTable } from '../../tables/exceptions-table.ts'
import { selectMemberships } from './select-memberships.ts'

/**
 * Limits of what is looked at, so that a workspace does not keep others waiting. Further traces of a workspace and further rows of
 * a trace are left as they are: their exceptions count, and their failed spans do not.
 */
const TRACES_OF_WORKSPACE = 20_000
const TRACES_OF_WINDOW = 200_000
const ROWS_OF_TRACE = 1_000
const ROWS_OF_WORKSPACE = 20_000
/** Parts of ten seconds in which spans of a trace start, and spans of a trace. */
const BUCKETS_OF_TRACE = 100
const SPANS_OF_TRACE = 10_000
/** Variants in one parameter of a query. */
const VARIANTS_AT_ONCE = 2_500

/** A time in which rows were stored, Unix ms by the clock of ClickHouse. */
export interface StoredWindow {
  readonly from: number
  readonly to: number
}

/** A trace with rows of a window, and when the first and the last of these were received, in Unix ms. */
export interface JudgedTrace extends TraceKey {
  readonly firstMs: number
  readonly lastMs: number
}

/** The queries read few granules: preparing more threads, and caching conditions, costs more than it saves. */
const SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  use_statistics: 0,
  optimize_use_projections: 0,
  use_query_condition_cache: 0,
}

const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
const NO_TRACE = "toFixedString('', 16)"

/** Returns the time of ClickHouse in Unix ms. */
export async function selectNowMs(client: ClickHouseClient, signal: AbortSignal): Promise<number> {
  const query = 'SELECT toUnixTimestamp64Milli(now64(3)) AS now'
  const [row] = await selectRows<{ now: string }>(client, { query, params: {}, signal })
  return Number(row?.now)
}

/** Returns the traces of which exceptions or failed spans were stored in a window. */
export async function selectJudgedTraces(
  client: ClickHouseClient,
  { from, to }: StoredWindow,
  signal: AbortSignal,
): Promise<JudgedTrace[]> {
  const isStored = `stored_at >= ${time('from')} AND stored_at < ${time('to')} AND trace_id != ${NO_TRACE}`
  const rows = await selectRows<TraceKey & { firstMs: string; lastMs: string }>(client, {
    query: `
      SELECT toString(workspace_id) AS workspaceId, lower(hex(trace_id)) AS traceId,
             toUnixTimestamp64Milli(min(received_at)) AS firstMs, toUnixTimestamp64Milli(max(received_at)) AS lastMs
      FROM (
        SELECT workspace_id, trace_id, received_at FROM failures WHERE ${isStored}
        UNION ALL
        SELECT workspace_id, trace_id, received_at FROM exceptions WHERE ${isStored} AND source != 'span_status')
      GROUP BY workspace_id, trace_id ORDER BY cityHash64(trace_id)
      LIMIT ${TRACES_OF_WORKSPACE} BY workspace_id LIMIT ${TRACES_OF_WINDOW}`,
    params: { from, to },
    signal,
    settings: SETTINGS,
  })
  return rows.map(row => ({ ...row, firstMs: Number(row.firstMs), lastMs: Number(row.lastMs) }))
}

/** Rows of `exceptions` and `failures` that are equal in what identifies them. Ids are hexadecimal digits. */
export interface JudgedRow extends TraceKey {
  readonly key: string
  readonly spanId: string
  /** Zeros for a root, and for a log record. */
  readonly parentSpanId: string
  readonly variantId: string
  /** Code of `ExceptionSource`. */
  readonly source: number
  /** Decimal text. */
  readonly occurredUnixNano: string
  readonly receivedMs: number
  readonly surfaceId: string
  readonly serviceName: string
  readonly serviceVersion: string
  readonly sessionId: string
  /** The finding as it was known when the first row was stored. */
  readonly findingId: string
  /** Its rank, decimal text. */
  readonly rank: string
  /** Rows in `exceptions`, and those of them that do not count. */
  readonly stored: number
  readonly twins: number
}

/** Traces that are judged together. */
interface TracesKey {
  readonly workspaceIds: readonly string[]
  readonly traceIds: readonly string[]
  /** When the rows were received that are compared, Unix ms. */
  readonly fromMs: number
  readonly toMs: number
}

const OF_TRACES = `workspace_id IN {workspaceIds: Array(String)}
  AND trace_id IN (SELECT toFixedString(unhex(arrayJoin({traceIds: Array(String)})), 16))`
const NEAR = `received_at >= ${time('fromMs')} AND received_at <= ${time('toMs')}`
const IDENTITY = 'workspace_id, trace_id, span_id, variant_id, source, occurred_at_unix_nano, received_at'
const KEY = `concat(lower(hex(trace_id)), lower(hex(span_id)), lower(hex(variant_id)), ' ', toString(toUInt8(source)), ' ',
  toString(occurred_at_unix_nano), ' ', toString(toUnixTimestamp64Milli(received_at)))`

/** Returns what is known of traces that have more than one exception, or a failed span. */
export async function selectJudgedRows(
  client: ClickHouseClient,
  key: TracesKey,
  signal: AbortSignal,
): Promise<JudgedRow[]> {
  const columns = `${IDENTITY}, surface_id, service_name, service_version, session_id`
  const rows = await selectRows<JudgedRow & Record<'receivedMs' | 'stored' | 'twins', string> & { sourceCode: number }>(
    client,
    {
      query: `
      SELECT * FROM (
        SELECT toString(workspace_id) AS workspaceId, lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId,
               lower(hex(max(parent))) AS parentSpanId, lower(hex(variant_id)) AS variantId, toUInt8(source) AS sourceCode, ${KEY} AS key,
               toString(occurred_at_unix_nano) AS occurredUnixNano, toUnixTimestamp64Milli(received_at) AS receivedMs,
               any(toString(surface_id)) AS surfaceId, any(toString(service_name)) AS serviceName,
               any(toString(service_version)) AS serviceVersion, any(session_id) AS sessionId, max(finding_id) AS findingId,
               toString(max(rank)) AS rank, sum(isStored) AS stored, sum(change) AS twins, count() OVER (PARTITION BY workspaceId, traceId) AS ofTrace
        FROM (
          SELECT ${columns}, parent_span_id AS parent, finding_id, rank, toUInt32(1) AS isStored, toInt32(0) AS change, 1 AS isRow
          FROM exceptions WHERE ${OF_TRACES} AND ${NEAR}
          UNION ALL
          SELECT ${columns}, parent_span_id, finding_id, rank, toUInt32(0), toInt32(0), 1 FROM failures WHERE ${OF_TRACES} AND ${NEAR}
          UNION ALL
          SELECT ${columns}, toFixedString('', 8), toFixedString('', 30), toUInt64(0), toUInt32(0), change, 0 FROM exception_twins WHERE ${OF_TRACES} AND ${NEAR})
        GROUP BY ${IDENTITY} HAVING sum(isRow) > 0
        ORDER BY receivedMs, key LIMIT ${ROWS_OF_TRACE} BY workspaceId, traceId)
      WHERE ofTrace > 1 OR sourceCode = 3 OR stored > 1
      ORDER BY receivedMs, key LIMIT ${ROWS_OF_WORKSPACE} BY workspaceId`,
      params: { ...key },
      signal,
    },
  )
  return rows.map(row => ({
    ...row,
    source: row.sourceCode,
    receivedMs: Number(row.receivedMs),
    stored: Number(row.stored),
    twins: Number(row.twins),
  }))
}

/** Returns the findings of variants, as far as they are known. Ids of variants are hexadecimal digits. */
export async function selectJudgedFindings(
  client: ClickHouseClient,
  workspaceIds: readonly string[],
  variantIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (let begin = 0; begin < variantIds.length; begin += VARIANTS_AT_ONCE) {
    const some = variantIds.slice(begin, begin + VARIANTS_AT_ONCE)
    const rows = await selectMemberships(client, { workspaceIds, variantIds: some }, signal)
    for (const { variantId, findingId } of rows) found.set(variantId, findingId)
  }
  return found
}

/** The parents of the spans of a trace: of each 16 hexadecimal digits of a span, then 16 of its parent. */
interface TraceParents extends TraceKey {
  readonly parents: string
}

/** Returns the parents of the spans of traces. Spans that were received more than a day before or after the rows are left out. */
export function selectTraceParents(
  client: ClickHouseClient,
  key: TracesKey,
  signal: AbortSignal,
): Promise<TraceParents[]> {
  return selectRows<TraceParents>(client, {
    query: `
      SELECT toString(workspace_id) AS workspaceId, lower(hex(trace_id)) AS traceId,
             lower(hex(arrayStringConcat(groupArray(${SPANS_OF_TRACE})(concat(span_id, parent_span_id))))) AS parents
      FROM spans
      WHERE workspace_id IN {workspaceIds: Array(String)} AND parent_span_id != toFixedString('', 8)
        AND (workspace_id, toDate(received_at), start_bucket, trace_id) IN (
          SELECT workspace_id, day, start_bucket, trace_id FROM trace_buckets
          WHERE ${OF_TRACES} AND day >= toDate(${time('fromMs')}) - 1 AND day <= toDate(${time('toMs')}) + 1
          ORDER BY start_bucket LIMIT ${BUCKETS_OF_TRACE} BY workspace_id, trace_id)
      GROUP BY workspace_id, trace_id`,
    params: { ...key },
    signal,
    settings: SETTINGS,
  })
}

/** Columns of `exceptions` that workers fill. */
export const COPIED_COLUMNS: readonly string[] = new ExceptionsTable().buffer.columns.map(({ name }) => name)

/** Returns failed spans with these keys as blocks of ClickHouse's format Native, each once. Empty if there are none. */
export function selectFailures(
  client: ClickHouseClient,
  key: TracesKey & { readonly keys: readonly string[] },
  signal: AbortSignal,
): Promise<Buffer> {
  return selectBytes(client, {
    query: `
      SELECT ${COPIED_COLUMNS.join(', ')} FROM failures
      WHERE ${OF_TRACES} AND ${NEAR} AND ${KEY} IN {keys: Array(String)}
      LIMIT 1 BY ${IDENTITY} FORMAT Native`,
    params: { ...key },
    signal,
    settings: SETTINGS,
  })
}
