import type { ClickHouseSettings } from '@clickhouse/client'
import { inBucketsOf } from '../attributes/buckets-of-traces.ts'

/** Hash of the columns of a row that a response shows. Two rows of a span with the same digest are presented in the same way. */
export const SPAN_DIGEST = `
  cityHash64(parent_span_id, start_time_unix_nano, end_time_unix_nano, name, kind, service_name, status_code,
             status_message, session_id, http_route, http_status_code)`

/**
 * Columns with which every RowBinary row of a trace begins. They decide on the order, the tree and the totals of the trace, and
 * on the row of a span that is shown. Ids are bytes in their written order, numbers are little-endian:
 *
 *   0 span id │ 8 parent's id, zeros for a root │ 16 start │ 24 end │ 32 arrival in Unix ms │ 40 digest │ 48
 */
export const SPAN_HEAD = `span_id, parent_span_id, start_time_unix_nano, end_time_unix_nano, received_at, ${SPAN_DIGEST}`

/** Positions in a row of the columns of `SPAN_HEAD`, and of what follows it. */
export const SPAN_AT = { spanId: 0, parentSpanId: 8, start: 16, end: 24, receivedAt: 32, digest: 40, rest: 48 } as const

/**
 * Order of the rows of a span that was received several times: the row that was received first is shown. The digest
 * orders rows of the same millisecond, so that every read chooses the same row.
 */
export const SPAN_PRECEDENCE = `received_at, ${SPAN_DIGEST}`

const OF_WORKSPACE = 'workspace_id = {workspaceId: String}'
/** Condition on rows of a trace in any table. */
export const OF_TRACE_ID = `${OF_WORKSPACE} AND trace_id = unhex({traceId: String})`

/** Condition on rows of `spans` of a trace: reads a granule of each of its buckets. */
export const OF_TRACE = inBucketsOf(OF_TRACE_ID)

/** Condition on rows of some spans of a trace in any table. */
export const IN_SPAN_IDS = 'span_id IN (SELECT toFixedString(unhex(arrayJoin({spanIds: Array(String)})), 8))'

/** The same as `OF_TRACE` for some spans of the trace. */
export const OF_SPANS = `${OF_TRACE} AND ${IN_SPAN_IDS}`

/** Condition that a row of any table is of one of `traceIds`, a parameter of hex texts. */
const IN_TRACE_IDS = 'trace_id IN (SELECT toFixedString(unhex(arrayJoin({traceIds: Array(String)})), 16))'

/** Condition on rows of `spans` of the traces of `traceIds`. */
export const OF_TRACES = inBucketsOf(`${OF_WORKSPACE} AND ${IN_TRACE_IDS}`)

/**
 * Settings of reads by trace: a filter of traces skips whole parts of `trace_buckets` before any of their columns is opened. By
 * default the filter is applied while parts are read, which saves nothing if a part has one granule to read.
 */
export const TRACE_READ_SETTINGS: ClickHouseSettings = {
  use_skip_indexes_on_data_read: 0,
  // It remembers granules by condition. Each trace is a condition of its own, so it costs 0.5 ms and helps none.
  use_query_condition_cache: 0,
}
