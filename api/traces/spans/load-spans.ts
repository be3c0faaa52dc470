import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../../clickhouse/client.ts'
import {
  type SpanDetailsRow,
  selectSpanDetails,
  selectSpanSizes,
} from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { TraceKey } from '../../../clickhouse/queries/traces/select-trace.ts'

/** A span, and how often it was received. */
export interface LoadedSpan {
  readonly row: SpanDetailsRow
  readonly occurrenceCount: number
}

/** The spans of a request, each in one of the lists. */
export interface LoadedSpans {
  readonly spans: readonly LoadedSpan[]
  /** Ids of spans for which there was no room. */
  readonly rest: string[]
  /** Ids of spans that are larger than a response. */
  readonly tooLarge: string[]
  /** Ids of spans that are not retained in the trace. */
  readonly absent: string[]
}

/** Bytes of the spans of a response in the memory of ClickHouse. */
const RESPONSE_BYTES = 4 * 1024 * 1024

/**
 * Loads spans of a trace. Almost all requests are one query. If its result is too large, the sizes of the spans decide which
 * of them a second one reads, in the order of the request. Throws a TransientError if ClickHouse does not respond before the
 * signal fires.
 */
export async function loadSpans(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<LoadedSpans> {
  try {
    const rows = await selectSpanDetails(client, key, { spanIds, onePerSpan: false }, signal)
    const counts = new Map<string, number>()
    for (const { spanId } of rows) counts.set(spanId, (counts.get(spanId) ?? 0) + 1)
    return { ...inOrder(spanIds, rows, counts), rest: [], tooLarge: [] }
  } catch (error) {
    if (!isClickHouseCode(error, OVER_LIMIT_CODES.result)) throw error
  }
  return loadWhatFits(client, key, spanIds, signal)
}

async function loadWhatFits(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<LoadedSpans> {
  const found = await selectSpanSizes(client, key, spanIds, signal)
  const sizes = new Map(found.map(({ spanId, bytes }) => [spanId, Number(bytes)]))
  const tooLarge = spanIds.filter(id => (sizes.get(id) ?? 0) > RESPONSE_BYTES)
  const rest: string[] = []
  const shown: string[] = []
  let bytesLeft = RESPONSE_BYTES
  for (const id of spanIds) {
    const size = sizes.get(id) ?? 0
    if (size > RESPONSE_BYTES) continue
    // The first span without room ends the response, so that `rest` continues the order of the request.
    if (rest.length > 0 || size > bytesLeft) rest.push(id)
    else {
      shown.push(id)
      bytesLeft -= size
    }
  }
  const rows = await selectSpanDetails(client, key, { spanIds: shown, onePerSpan: true }, signal)
  const counts = new Map(found.map(({ spanId, rows: count }) => [spanId, Number(count)]))
  const isAbsent = (id: string) => !sizes.has(id)
  const { spans, absent } = inOrder(shown, rows, counts)
  return { spans, rest: rest.filter(id => !isAbsent(id)), tooLarge, absent: [...absent, ...rest.filter(isAbsent)] }
}

/** Orders the first row of each span as the ids are, and returns the ids without a row. */
function inOrder(
  spanIds: readonly string[],
  rows: readonly SpanDetailsRow[],
  counts: ReadonlyMap<string, number>,
): Pick<LoadedSpans, 'spans' | 'absent'> {
  const rowOf = new Map<string, SpanDetailsRow>()
  for (const row of rows) if (!rowOf.has(row.spanId)) rowOf.set(row.spanId, row)
  const spans = spanIds.flatMap(id => {
    const row = rowOf.get(id)
    return row === undefined ? [] : [{ row, occurrenceCount: counts.get(id) ?? 1 }]
  })
  return { spans, absent: spanIds.filter(id => !rowOf.has(id)) }
}
