import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { type BoundCondition, type Select, selectRows } from '../../select.ts'
import { ESCAPED_VALUE } from '../../tables/packed-attributes.ts'
import { type AttributeColumns, type AttributeType, TYPES } from '../attributes/attribute-columns.ts'
import { unescaped } from '../attributes/attribute-text.ts'
import { readOrigin } from '../attributes/origin.ts'
import { KEYS, readAttributes, VALUES } from '../attributes/packed-attributes.ts'
import type { ScopeRow } from '../attributes/scope-columns.ts'
import {
  LOG_READ_SETTINGS,
  type LogsFilter,
  logsCondition,
  ofTrace,
  type SearchLimits,
  searchSettings,
  timestampOf,
} from './logs-filter.ts'

/** A stored log record with all of its columns. Ids are hex, numbers of 64 bits are decimal digits. */
export interface LogRow extends ScopeRow, LogPosition {
  readonly surfaceId: string
  readonly serviceVersion: string
  readonly timeUnixNano: string
  readonly observedTimeUnixNano: string
  readonly severityNumber: number
  readonly severityText: string
  readonly bodyText: string
  readonly bodyType: AttributeType
  readonly attributeColumns: AttributeColumns
  readonly droppedAttributesCount: number
  readonly flags: number
  readonly traceId: string
  readonly spanId: string
  readonly eventName: string
  readonly sessionId: string
}

/**
 * Position of a record in a list. Records have no id, so records with the same position are equal in everything that a response
 * shows.
 */
export interface LogPosition {
  /** Unix nanoseconds. */
  readonly nanos: string
  /** When it was received, Unix ms. */
  readonly receivedMs: string
  /** Hash of all columns that are shown. */
  readonly digest: string
}

/** Selects records of a list, the newest first. */
export interface LogsPage {
  readonly filter: LogsFilter
  /** The times of the records, in Unix nanoseconds. */
  readonly times: readonly string[]
  /** The position before which the page begins: records at it are included. */
  readonly atMost: LogPosition | undefined
  /** Number of records that are left out. */
  readonly offset: number
  readonly limit: number
}

const DIGEST = `
  cityHash64(surface_id, service_name, origin, time_unix_nano, observed_time_unix_nano, severity_number, severity_text, body,
    body_type, attribute_keys, attribute_values, dropped_attributes_count, flags, trace_id, span_id, event_name, session_id)`

const OTHER_COLUMNS = `
  toUnixTimestamp64Nano(timestamp) AS nanos, toUnixTimestamp64Milli(received_at) AS receivedMs, ${DIGEST} AS digest,
  surface_id AS surfaceId, service_name AS serviceName, time_unix_nano AS timeUnixNano,
  observed_time_unix_nano AS observedTimeUnixNano, severity_number AS severityNumber, body_type AS bodyType,
  dropped_attributes_count AS droppedAttributesCount, flags, lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId,
  session_id AS sessionId`

const WHOLE_COLUMNS = `${OTHER_COLUMNS}, toString(origin) AS originLines, severity_text AS severityText,
  event_name AS eventName, body AS bodyText, (toString(attribute_keys), attribute_values) AS attributes`

/** Lengths to which the texts of a record are cut that is too large for a response. */
const CUT = { bodyCharacters: 65_536, attributes: 64, textCharacters: 1_024 } as const

const cutText = (text: string) => `leftUTF8(${text}, ${CUT.textCharacters})`
const CODES = `arrayMap(t -> bitAnd(ascii(t), 15), ngrams(splitByChar('\\0', attribute_keys)[1], 1))`
/** Keys, values and codes of types, each list and each text cut. */
const CUT_ATTRIBUTES = `
  (arrayMap(k -> ${cutText(unescaped('k'))}, arraySlice(${KEYS}, 1, ${CUT.attributes}) AS cutKeys),
   arrayMap((v, c) -> ${cutText(`if(c < ${ESCAPED_VALUE}, v, ${unescaped('v')})`)}, arrayResize(${VALUES}, length(cutKeys)),
            arrayResize(${CODES} AS codes, length(cutKeys))),
   arrayMap(c -> c % ${ESCAPED_VALUE}, arrayResize(codes, length(cutKeys))))`
/** Lines of the origin that are JSON objects of any length. */
const OBJECT_LINES = '2, 7'

const CUT_COLUMNS = `${OTHER_COLUMNS},
  arrayStringConcat(
    arrayMap((line, i) -> if(i IN (${OBJECT_LINES}) AND length(line) > ${CUT.bodyCharacters}, '', line),
             splitByChar('\\n', toString(origin)), arrayEnumerate(splitByChar('\\n', toString(origin)))), '\\n') AS originLines,
  ${cutText('severity_text')} AS severityText, ${cutText('event_name')} AS eventName,
  leftUTF8(body, ${CUT.bodyCharacters}) AS bodyText, ${CUT_ATTRIBUTES} AS attributes`

/** Bytes of a row in the memory of ClickHouse besides its texts. */
const ROW_BYTES = 600

const SIZE = `${ROW_BYTES} + byteSize(severity_text, body, toString(attribute_keys), attribute_values, event_name, toString(origin))`

const SETTINGS: ClickHouseSettings = {
  ...LOG_READ_SETTINGS,
  // Tuples are arrays.
  output_format_json_named_tuples_as_objects: 0,
}

/** Limits of the result of `selectLogs`. */
interface LogsResult {
  /** Bytes of the rows in the memory of ClickHouse. With more, the read fails with the code 396. That of the client if absent. */
  readonly limitBytes?: number
  /** Whether texts are cut, for a record that is too large for a response. */
  readonly isCut?: boolean
}

/** What a row is read from. */
interface PackedRow extends Omit<LogRow, keyof ScopeRow | 'serviceVersion' | 'attributeColumns'> {
  readonly serviceName: string
  readonly originLines: string
  readonly attributes:
    | readonly [keyList: string, valueList: string]
    | readonly [keys: string[], values: string[], codes: number[]]
}

/** Returns the records of a page, the newest first. */
export async function selectLogs(
  client: ClickHouseClient,
  page: LogsPage,
  { limitBytes, isCut = false }: LogsResult,
  signal: AbortSignal,
): Promise<LogRow[]> {
  const settings = {
    ...SETTINGS,
    ...(limitBytes !== undefined && { max_result_bytes: String(limitBytes), result_overflow_mode: 'throw' as const }),
  }
  const rows = await selectRows<PackedRow>(
    client,
    selectOf(page, isCut ? CUT_COLUMNS : WHOLE_COLUMNS, settings, signal),
  )
  return rows.map(({ serviceName, originLines, attributes, ...row }) => ({
    ...row,
    ...readOrigin(serviceName, originLines),
    attributeColumns: columnsOf(attributes),
  }))
}

function columnsOf(attributes: PackedRow['attributes']): AttributeColumns {
  if (attributes.length === 2) return readAttributes(...attributes)
  const [keys, values, codes] = attributes
  return [keys, values, codes.map(code => TYPES[code] ?? 'empty')]
}

/** Returns the sizes of the records of a page in the memory of ClickHouse, in the same order. */
export async function selectLogSizes(client: ClickHouseClient, page: LogsPage, signal: AbortSignal): Promise<number[]> {
  const columns = `toUnixTimestamp64Nano(timestamp) AS nanos, ${DIGEST} AS digest, ${SIZE} AS bytes`
  const rows = await selectRows<{ bytes: string }>(client, selectOf(page, columns, SETTINGS, signal))
  return rows.map(({ bytes }) => Number(bytes))
}

/** Returns how many records have this position. */
export async function selectLogCountAt(
  client: ClickHouseClient,
  filter: LogsFilter,
  position: LogPosition,
  signal: AbortSignal,
): Promise<number> {
  const { sql, params } = pageCondition({ filter, times: [position.nanos], atMost: undefined })
  const [row] = await selectRows<{ total: string }>(client, {
    query: `
      SELECT count() AS total FROM logs
      WHERE ${sql} AND toUnixTimestamp64Milli(received_at) = {receivedMs: Int64} AND ${DIGEST} = {digest: UInt64}`,
    params: { ...params, receivedMs: position.receivedMs, digest: position.digest },
    signal,
    settings: SETTINGS,
    ...ofTrace(filter),
  })
  return Number(row?.total ?? 0)
}

function selectOf(page: LogsPage, columns: string, settings: ClickHouseSettings, signal: AbortSignal): Select {
  const { sql, params } = pageCondition(page)
  return {
    query: `
      SELECT ${columns} FROM logs WHERE ${sql}
      ORDER BY timestamp DESC, received_at DESC, digest DESC LIMIT {limit: UInt32} OFFSET {offset: UInt32}`,
    params: { ...params, limit: page.limit, offset: page.offset },
    signal,
    settings,
    ...ofTrace(page.filter),
  }
}

function pageCondition({ filter, times, atMost }: Pick<LogsPage, 'filter' | 'times' | 'atMost'>): BoundCondition {
  const { sql, params } = logsCondition(filter)
  const conditions = [
    sql,
    "timestamp IN (SELECT fromUnixTimestamp64Nano(arrayJoin({times: Array(Int64)}), 'UTC'))",
    ...(atMost === undefined
      ? []
      : [
          `(toUnixTimestamp64Nano(timestamp), toUnixTimestamp64Milli(received_at), ${DIGEST})
             <= ({nanos: Int64}, {receivedMs: Int64}, {digest: UInt64})`,
        ]),
  ]
  const position = atMost && { nanos: atMost.nanos, receivedMs: atMost.receivedMs, digest: atMost.digest }
  return {
    sql: conditions.join(' AND '),
    params: { ...params, times: times.map(time => BigInt(time)), ...position },
  }
}

/** A part of the time of a search, in Unix nanoseconds. Undefined is without a bound. */
interface SearchWindow {
  /** Inclusive. */
  readonly since: bigint | undefined
  /** Exclusive. */
  readonly before: bigint | undefined
  /** Most records. */
  readonly limit: number
}

/** Returns the times of the newest records in a window, in Unix nanoseconds, the newest first. It opens no wide column. */
export async function selectLogTimes(
  client: ClickHouseClient,
  filter: LogsFilter,
  { since, before, limit }: SearchWindow,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<string[]> {
  const { sql, params } = logsCondition(filter)
  const window = [
    ...(since === undefined ? [] : [` AND timestamp >= ${timestampOf('since')}`]),
    ...(before === undefined ? [] : [` AND timestamp < ${timestampOf('before')}`]),
  ].join('')
  const rows = await selectRows<{ nanos: string }>(client, {
    query: `
      SELECT toUnixTimestamp64Nano(timestamp) AS nanos FROM logs WHERE ${sql}${window}
      ORDER BY timestamp DESC LIMIT {limit: UInt32}`,
    params: { ...params, since, before, limit },
    signal,
    settings: searchSettings(limits),
    ...ofTrace(filter),
  })
  return rows.map(({ nanos }) => nanos)
}
