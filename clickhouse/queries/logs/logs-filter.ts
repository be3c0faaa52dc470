import type { ClickHouseSettings } from '@clickhouse/client'
import type { BoundCondition, Select } from '../../select.ts'
import { type AttributeCondition, attributeConditions } from '../attributes/attribute-conditions.ts'

/** Selects log records of a workspace. An undefined field selects all. */
export interface LogsFilter {
  readonly workspaceId: string
  /** 32 hex digits, not all of them 0. */
  readonly traceId: string | undefined
  /** 16 hex digits, not all of them 0. */
  readonly spanId: string | undefined
  readonly sessionId: string | undefined
  readonly serviceName: string | undefined
  /** Least SeverityNumber of OTLP. */
  readonly minSeverityNumber: number | undefined
  /** Words of the body in lower case, as the index `logs_by_token` divides it. */
  readonly words: readonly string[]
  readonly attributes: readonly AttributeCondition[]
  /** Start of the time of the records, Unix ms, inclusive. */
  readonly fromMs: number | undefined
  /** End of the time, Unix ms, exclusive. */
  readonly toMs: number | undefined
  /** Start of the time at which records were received, Unix ms, inclusive. */
  readonly receivedFromMs?: number | undefined
}

/** The end of ClickHouse's DateTime64(9), Unix ms. Records after it are stored with its last nanosecond. */
export const TIME_MAX_MS = 9_223_372_036_854

/** Returns the condition on the rows of `logs`. It binds `workspaceId` and further parameters. */
export function logsCondition(filter: LogsFilter): BoundCondition {
  const { workspaceId, traceId, spanId, sessionId, serviceName, minSeverityNumber, words } = filter
  const { fromMs, toMs, receivedFromMs } = filter
  const attributes = attributeConditions(filter.attributes)
  const conditions = [
    'workspace_id = {workspaceId: String}',
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
    ...(traceId === undefined ? [] : ['trace_id = unhex({traceId: String})']),
    ...(spanId === undefined ? [] : ['span_id = unhex({spanId: String})']),
    ...(sessionId === undefined ? [] : ['session_id = {sessionId: String}']),
    ...(minSeverityNumber === undefined ? [] : ['severity_number >= {minSeverityNumber: UInt8}']),
    ...words.map((_, i) => `hasToken(lower(body), {word${i}: String})`),
    ...attributes.sql,
    ...(fromMs === undefined ? [] : [`timestamp >= ${timestampOf('fromNanos')}`]),
    ...(toMs === undefined ? [] : [`timestamp < ${timestampOf('toNanos')}`]),
    ...(receivedFromMs === undefined
      ? []
      : ["received_at >= fromUnixTimestamp64Milli({receivedFromMs: Int64}, 'UTC')"]),
  ]
  const params = {
    ...{ workspaceId, traceId, spanId, sessionId, serviceName, minSeverityNumber },
    ...Object.fromEntries(words.map((word, i) => [`word${i}`, word])),
    ...attributes.params,
    ...(fromMs !== undefined && { fromNanos: nanosOf(fromMs) }),
    ...(toMs !== undefined && { toNanos: nanosOf(toMs) }),
    ...(receivedFromMs !== undefined && { receivedFromMs }),
  }
  return { sql: conditions.join(' AND '), params }
}

/** Returns the time of a parameter with Unix nanoseconds, as an expression that the primary key is compared with. */
export function timestampOf(parameter: string): string {
  return `fromUnixTimestamp64Nano({${parameter}: Int64}, 'UTC')`
}

/** Returns Unix nanoseconds of Unix ms. */
export function nanosOf(unixMs: number): bigint {
  return BigInt(unixMs) * 1_000_000n
}

/** Returns the trace of a read that names one: in a cluster its records are on one shard. */
export function ofTrace({ workspaceId, traceId }: LogsFilter): Pick<Select, 'trace'> {
  return traceId === undefined ? {} : { trace: { workspaceId, traceId } }
}

/** Amounts that one query of a search may read. */
export interface SearchLimits {
  readonly rows: number
  readonly bytes: number
}

/** Settings of every read of log records. */
export const LOG_READ_SETTINGS: ClickHouseSettings = {
  // Indexes are applied before parts are read, so that the number of rows to read is known then, and a search for too many ends
  // at once.
  use_skip_indexes_on_data_read: 0,
  // It remembers granules by condition, and the times of searches differ.
  use_query_condition_cache: 0,
}

/** Returns the settings of a search. It fails with the code 158 or 307 if it would read more. */
export function searchSettings({ rows, bytes }: SearchLimits): ClickHouseSettings {
  return { ...LOG_READ_SETTINGS, max_rows_to_read: String(rows), max_bytes_to_read: String(bytes) }
}
