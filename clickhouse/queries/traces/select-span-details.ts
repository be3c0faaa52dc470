import type { ClickHouseSettings } from '@clickhouse/client'
import { MIB } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectBytes, selectRows } from '../../select.ts'
import type { AttributeColumns } from '../attributes/attribute-columns.ts'
import { readOrigin } from '../attributes/origin.ts'
import { readAttributes } from '../attributes/packed-attributes.ts'
import type { ScopeRow } from '../attributes/scope-columns.ts'
import { readSpanDetails, type SpanDetailColumns } from './read-span-details.ts'
import { OF_SPANS, OF_TRACE, SPAN_DIGEST, SPAN_PRECEDENCE, TRACE_READ_SETTINGS } from './span-row.ts'

/** A stored row of a span with all of its columns. Ids are hex, numbers of 64 bits are decimal digits. */
export interface SpanDetailsRow extends ScopeRow, Readonly<SpanDetailColumns> {
  readonly spanId: string
  readonly parentSpanId: string
  readonly surfaceId: string
  readonly receivedAtMs: string
  readonly flags: number
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly statusCode: number
  readonly statusMessage: string
  readonly attributeColumns: AttributeColumns
  readonly sessionId: string
  readonly httpRoute: string
  readonly httpStatusCode: number
}

/** The columns of a row that are divided into those of `SpanDetailsRow`. `details` is base64. */
interface PackedColumns {
  readonly serviceName: string
  readonly origin: string
  readonly attributeKeys: string
  readonly attributeValues: string
  readonly details: string
}

/** A row with the bytes that bound the memory which it takes: those of its JSON, and some for each attribute. */
export interface SizedSpanRow<Row extends SpanDetailsRow = SpanDetailsRow> {
  readonly row: Row
  readonly bytes: number
}

/** Selects rows of spans. */
interface SpanSelection {
  /** 16 hex digits each. */
  readonly spanIds: readonly string[]
  /** Whether only the row of each span is selected that is shown. */
  readonly onePerSpan: boolean
  /** Limit of the result in the memory of ClickHouse. JSON of control characters has up to six times as many bytes. */
  readonly resultBytes: number
}

const COLUMNS = `
  lower(hex(span_id)) AS spanId, lower(hex(parent_span_id)) AS parentSpanId, surface_id AS surfaceId,
  toUnixTimestamp64Milli(received_at) AS receivedAtMs, service_name AS serviceName, origin, flags, name, kind,
  start_time_unix_nano AS startTimeUnixNano, end_time_unix_nano AS endTimeUnixNano, status_code AS statusCode,
  status_message AS statusMessage, attribute_keys AS attributeKeys, attribute_values AS attributeValues,
  session_id AS sessionId, http_route AS httpRoute, http_status_code AS httpStatusCode, base64Encode(details) AS details`

/**
 * Returns the stored rows of spans, of each span the one to show first. Fails with ClickHouse's code 396 if the rows have more
 * than `resultBytes`.
 */
export async function selectSpanDetails(
  client: ClickHouseClient,
  key: TraceKey,
  { spanIds, onePerSpan, resultBytes }: SpanSelection,
  signal: AbortSignal,
): Promise<SizedSpanRow[]> {
  const query = `
    SELECT ${COLUMNS} FROM spans WHERE ${OF_SPANS} ORDER BY ${SPAN_PRECEDENCE} ${onePerSpan ? 'LIMIT 1 BY span_id' : ''}
    FORMAT JSONEachRow`
  const params = { ...key, spanIds }
  return sizedRows(
    await selectBytes(client, { query, params, signal, settings: detailsSettings(resultBytes), trace: key }),
  )
}

/** Memory of ClickHouse for a small trace. To order rows of the same start it needs all of them, whatever the limit of rows is. */
const SMALL_TRACE_MEMORY = 64 * MIB

/** Limits of a trace that is read in one query. */
interface SmallTrace {
  /** Stored rows, of which a span may have several. */
  readonly maxRows: number
  /** As in `SpanSelection`. */
  readonly resultBytes: number
}

/**
 * Returns the spans of a trace in the order of their starts, of each the row to show first, or undefined if the trace has more than
 * `maxRows`. Fails with ClickHouse's code 396 if the rows have more than `resultBytes`, and with 241 if it needs too much memory.
 */
export async function selectSmallTrace(
  client: ClickHouseClient,
  key: TraceKey,
  { maxRows, resultBytes }: SmallTrace,
  signal: AbortSignal,
): Promise<SizedSpanRow[] | undefined> {
  const query = `
    SELECT ${COLUMNS}, ${SPAN_DIGEST} AS digest FROM spans WHERE ${OF_TRACE} ORDER BY start_time_unix_nano, span_id
    LIMIT {limit: UInt32} FORMAT JSONEachRow`
  const params = { ...key, limit: maxRows + 1 }
  const settings = { ...detailsSettings(resultBytes), max_threads: 1, max_memory_usage: String(SMALL_TRACE_MEMORY) }
  const rows = sizedRows<DigestedRow>(await selectBytes(client, { query, params, signal, settings, trace: key }))
  if (rows.length > maxRows) return undefined
  // Setting a key again keeps its place, which is that of the row that starts first.
  const shown = new Map<string, SizedSpanRow<DigestedRow>>()
  for (const sized of rows) {
    const other = shown.get(sized.row.spanId)
    if (other === undefined || precedes(sized.row, other.row)) shown.set(sized.row.spanId, sized)
  }
  return [...shown.values()]
}

/** A row with what orders those of a span that was received several times. */
interface DigestedRow extends SpanDetailsRow {
  readonly digest: string
}

/** The order of `SPAN_PRECEDENCE`. */
function precedes(a: DigestedRow, b: DigestedRow): boolean {
  if (a.receivedAtMs !== b.receivedAtMs) return Number(a.receivedAtMs) < Number(b.receivedAtMs)
  return BigInt(a.digest) < BigInt(b.digest)
}

function detailsSettings(resultBytes: number): ClickHouseSettings {
  return {
    ...TRACE_READ_SETTINGS,
    max_result_bytes: String(resultBytes),
    result_overflow_mode: 'throw',
  }
}

function sizedRows<Row extends SpanDetailsRow>(lines: Buffer): SizedSpanRow<Row>[] {
  const rows: SizedSpanRow<Row>[] = []
  for (let start = 0; start < lines.length; ) {
    const newline = lines.indexOf(0x0a, start)
    const end = newline < 0 ? lines.length : newline
    const row = unpacked<Row>(JSON.parse(lines.toString('utf8', start, end)))
    rows.push({ row, bytes: end - start + ATTRIBUTE_BYTES * attributesOf(row) })
    start = end + 1
  }
  return rows
}

/** What an attribute takes besides its texts. */
const ATTRIBUTE_BYTES = 16

function attributesOf({ attributeColumns, eventColumns, linkColumns }: SpanDetailsRow): number {
  const count = (total: number, [keys]: AttributeColumns) => total + keys.length
  const ofEvents = eventColumns.reduce((total, [, , attributes]) => count(total, attributes), 0)
  return count(ofEvents, attributeColumns) + linkColumns.reduce((total, [, , , , of]) => count(total, of), 0)
}

function unpacked<Row extends SpanDetailsRow>(packed: PackedColumns & Omit<Row, keyof SpanDetailsRow>): Row {
  const { origin, attributeKeys, attributeValues, details, ...columns } = packed
  return {
    ...columns,
    ...readOrigin(columns.serviceName, origin),
    ...readSpanDetails(Buffer.from(details, 'base64')),
    attributeColumns: readAttributes(attributeKeys, attributeValues),
  } as unknown as Row
}

/** Size of a span. */
interface SpanSize {
  readonly spanId: string
  /** Bytes of its largest row in the memory of ClickHouse. */
  readonly bytes: string
  /** Number of its rows. */
  readonly rows: string
}

/** Returns the sizes of these spans. */
export function selectSpanSizes(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<SpanSize[]> {
  return selectRows(client, {
    query: `
      SELECT lower(hex(span_id)) AS spanId, count() AS rows,
             max(byteSize(name, status_message, http_route, attribute_values) + length(service_name) + length(origin) +
                 length(attribute_keys) + length(base64Encode(details))) AS bytes
      FROM spans WHERE ${OF_SPANS} GROUP BY span_id`,
    params: { ...key, spanIds },
    signal,
    settings: TRACE_READ_SETTINGS,
    trace: key,
  })
}

const SPAN_ID_BYTES = 8

/**
 * Returns the ids (16 hex digits each) of the first `limit` spans of a trace by start. The order is that of the primary key, so
 * that rows after them are not read, however many spans the trace has.
 */
export async function selectFirstSpanIds(
  client: ClickHouseClient,
  key: TraceKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const query = `
    SELECT span_id FROM spans WHERE ${OF_TRACE} ORDER BY start_time_unix_nano, span_id
    LIMIT 1 BY span_id LIMIT {limit: UInt32} FORMAT RowBinary`
  const params = { ...key, limit }
  const bytes = await selectBytes(client, {
    query,
    params,
    signal,
    settings: { ...TRACE_READ_SETTINGS, max_result_bytes: '0' },
    trace: key,
  })
  return Array.from({ length: bytes.length / SPAN_ID_BYTES }, (_, i) =>
    bytes.toString('hex', i * SPAN_ID_BYTES, (i + 1) * SPAN_ID_BYTES),
  )
}
