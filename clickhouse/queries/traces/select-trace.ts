import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { selectBinary } from '../../select.ts'
import { OF_TRACE, SPAN_ROW, type SpanRow, TRACE_READ_SETTINGS } from './span-row.ts'

export interface TraceKey {
  readonly workspaceId: string
  /** 32 hex digits. */
  readonly traceId: string
}

/**
 * Names and messages may be long, and any number of traces may be asked for at once: what is more than 5,000 spans
 * usually are (2 MB) is read like a large trace, of which few are read at a time.
 */
const RESULT_BYTES = 8 * 1024 * 1024

const SETTINGS: ClickHouseSettings = {
  ...TRACE_READ_SETTINGS,
  max_result_bytes: String(RESULT_BYTES),
  result_overflow_mode: 'throw',
  // One granule is one thread's work: making a second one ready took 1 ms of 7.
  max_threads: 1,
}

/**
 * Up to `maxRows` stored rows of a trace, duplicates among them, in no order. Not restricted to the days the finding
 * was seen on: a trace's spans may arrive on another day than its exception. Fails with ClickHouse's code 396 when the rows are over 8 MiB.
 *
 * They come by columns: for 1,000 rows, names of fields beside every value took ClickHouse 1.1 ms of CPU more, and this
 * process 0.5 of 1.0.
 */
export async function selectTrace(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<SpanRow[]> {
  const query = `SELECT ${SPAN_ROW} FROM spans WHERE ${OF_TRACE} LIMIT {maxRows: UInt32} FORMAT JSONCompactColumns`
  const chunks: Buffer[] = []
  await selectBinary(client, { query, params: { ...key, maxRows }, signal, settings: SETTINGS }, chunk => {
    chunks.push(chunk)
  })
  const columns = JSON.parse(Buffer.concat(chunks).toString()) as SpanColumns | []
  // Without rows there are no columns either.
  return columns.length === 0 ? [] : toRows(columns)
}

/** The columns of SPAN_ROW, in its order. */
type SpanColumns = readonly [
  spanId: readonly string[],
  parentSpanId: readonly string[],
  startTimeUnixNano: readonly string[],
  endTimeUnixNano: readonly string[],
  name: readonly string[],
  kind: readonly number[],
  serviceName: readonly string[],
  statusCode: readonly number[],
  statusMessage: readonly string[],
  sessionId: readonly string[],
  httpRoute: readonly string[],
  httpStatusCode: readonly number[],
  receivedAtUnixMs: readonly string[],
  digest: readonly string[],
]

function toRows(columns: SpanColumns): SpanRow[] {
  const [spanIds, parents, starts, ends, names, kinds, services, statuses, messages, ...rest] = columns
  const [sessions, routes, httpStatuses, receivedAt, digests] = rest
  return spanIds.map((spanId, i) => ({
    spanId,
    parentSpanId: parents[i] as string,
    startTimeUnixNano: starts[i] as string,
    endTimeUnixNano: ends[i] as string,
    name: names[i] as string,
    kind: kinds[i] as number,
    serviceName: services[i] as string,
    statusCode: statuses[i] as number,
    statusMessage: messages[i] as string,
    sessionId: sessions[i] as string,
    httpRoute: routes[i] as string,
    httpStatusCode: httpStatuses[i] as number,
    receivedAtUnixMs: receivedAt[i] as string,
    digest: digests[i] as string,
  }))
}
