import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../../clickhouse/client.ts'
import {
  type SizedSpanRow,
  selectSpanDetails,
  selectSpanSizes,
} from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { TraceKey } from '../../../clickhouse/read-connection.ts'
import { MIB } from '../../../schemas/units.ts'
import type { TraceReadDeps } from '../load-columns.ts'

/** A span, and how often it was received. */
export interface LoadedSpan extends SizedSpanRow {
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

/** Bytes in the memory of ClickHouse of spans that are read without waiting for a slot, of which 32 requests may read at once. */
export const SMALL_BYTES = MIB
/** Bytes of the spans of a response in the memory of ClickHouse. */
export const RESPONSE_BYTES = 4 * MIB

/**
 * Loads spans of a trace and returns what `use` makes of them. Almost all requests are one query. Spans of more than
 * `SMALL_BYTES` are read in a slot, which ends with `use`. Throws a TransientError if ClickHouse does not respond before the
 * signal fires.
 */
export async function useSpans<T>(
  { clickhouse, largeTraces }: TraceReadDeps,
  key: TraceKey,
  spanIds: readonly string[],
  use: (loaded: LoadedSpans) => T,
  signal: AbortSignal,
): Promise<T> {
  const small = await tryLoadSpans(clickhouse, key, spanIds, SMALL_BYTES, signal)
  if (small !== undefined) return use(small)
  const useLarge = async () => use(await loadSpans(clickhouse, key, spanIds, RESPONSE_BYTES, signal))
  return largeTraces.run(key.workspaceId, useLarge, signal)
}

/**
 * Loads spans of a trace that have at most `limitBytes` in the memory of ClickHouse. If they have more, their sizes decide which
 * of them are read, in the order of the request.
 */
export async function loadSpans(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  limitBytes: number,
  signal: AbortSignal,
): Promise<LoadedSpans> {
  const loaded = await tryLoadSpans(client, key, spanIds, limitBytes, signal)
  return loaded ?? loadWhatFits(client, key, spanIds, limitBytes, signal)
}

/** Loads spans of a trace, or returns undefined if they have more than `limitBytes` in the memory of ClickHouse. */
async function tryLoadSpans(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  limitBytes: number,
  signal: AbortSignal,
): Promise<LoadedSpans | undefined> {
  try {
    const selection = { spanIds, onePerSpan: false, resultBytes: limitBytes }
    const rows = await selectSpanDetails(client, key, selection, signal)
    const counts = new Map<string, number>()
    for (const { row } of rows) counts.set(row.spanId, (counts.get(row.spanId) ?? 0) + 1)
    return { ...inOrder(spanIds, rows, counts), rest: [], tooLarge: [] }
  } catch (error) {
    if (!isClickHouseCode(error, OVER_LIMIT_CODES.result)) throw error
    return undefined
  }
}

async function loadWhatFits(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  limitBytes: number,
  signal: AbortSignal,
): Promise<LoadedSpans> {
  const found = await selectSpanSizes(client, key, spanIds, signal)
  const sizes = new Map(found.map(({ spanId, bytes }) => [spanId, Number(bytes)]))
  const tooLarge = spanIds.filter(id => (sizes.get(id) ?? 0) > limitBytes)
  const rest: string[] = []
  const shown: string[] = []
  let bytesLeft = limitBytes
  for (const id of spanIds) {
    const size = sizes.get(id) ?? 0
    if (size > limitBytes) continue
    // The first span without room ends the response, so that `rest` continues the order of the request.
    if (rest.length > 0 || size > bytesLeft) rest.push(id)
    else {
      shown.push(id)
      bytesLeft -= size
    }
  }
  // A row of a result has more than the columns that are measured.
  const selection = { spanIds: shown, onePerSpan: true, resultBytes: 2 * limitBytes }
  const rows = await selectSpanDetails(client, key, selection, signal)
  const counts = new Map(found.map(({ spanId, rows: count }) => [spanId, Number(count)]))
  const isAbsent = (id: string) => !sizes.has(id)
  const { spans, absent } = inOrder(shown, rows, counts)
  return { spans, rest: rest.filter(id => !isAbsent(id)), tooLarge, absent: [...absent, ...rest.filter(isAbsent)] }
}

/** Orders the first row of each span as the ids are, and returns the ids without a row. */
function inOrder(
  spanIds: readonly string[],
  rows: readonly SizedSpanRow[],
  counts: ReadonlyMap<string, number>,
): Pick<LoadedSpans, 'spans' | 'absent'> {
  const rowOf = new Map<string, SizedSpanRow>()
  for (const sized of rows) if (!rowOf.has(sized.row.spanId)) rowOf.set(sized.row.spanId, sized)
  const spans = spanIds.flatMap(id => {
    const found = rowOf.get(id)
    return found === undefined ? [] : [{ ...found, occurrenceCount: counts.get(id) ?? 1 }]
  })
  return { spans, absent: spanIds.filter(id => !rowOf.has(id)) }
}
