import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../clickhouse/client.ts'
import { type FindingTraceKey, selectFindingHasTrace } from '../../clickhouse/queries/findings/select-finding-traces.ts'
import type { ColumnsRow, ColumnsSelection } from '../../clickhouse/queries/traces/select-trace-columns.ts'
import { selectTraceExtent } from '../../clickhouse/queries/traces/select-trace-extent.ts'
import type { TraceKey } from '../../clickhouse/read-connection.ts'
import { MIB } from '../../schemas/units.ts'
import { chooseSpans, DANGLING } from './choose-spans.ts'
import { EXAMINED_ROWS, loadColumns, SMALL_TRACE_ROWS, type TraceColumns, type TraceReadDeps } from './load-columns.ts'
import { renderTrace, type ShownColumns, type ShownSpan } from './render-trace.ts'
import { RowTexts } from './row-texts.ts'

/**
 * Limit of a small trace in the memory of ClickHouse, in which a span has about 150 bytes. Names and messages may be long, and 32
 * requests may read at the same time: the API needs up to 170 MiB for results of this size, and 226 for twice of it. A larger
 * trace, or one with more rows than `SMALL_TRACE_ROWS`, waits for its turn (`largeTraces`).
 */
const SMALL_TRACE_BYTES = 2 * MIB
/** Limit of the texts in one response. A span whose texts alone are larger is left out, like one over the limit of spans. */
const RESPONSE_TEXT_BYTES = 8 * MIB
const STATUS_ERROR = 2

const ignore = () => {}

/**
 * Loads a trace with at most `limit` spans and returns it as JSON (docs/api/findings.md#trace). Returns undefined if nothing of the
 * trace is retained, or if the finding did not occur in it. Throws a TransientError if ClickHouse does not respond before the
 * signal fires.
 */
export async function loadTrace(
  deps: TraceReadDeps,
  key: FindingTraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Buffer | undefined> {
  const { clickhouse, largeTraces } = deps
  const [small, isOfFinding] = await Promise.all([
    loadSmallTrace(clickhouse, key, abortSignal),
    selectFindingHasTrace(clickhouse, key, abortSignal),
  ])
  if (small === undefined || !isOfFinding) return undefined
  if (small !== 'large') return renderSmallTrace(key, small, limit)
  const load = () => loadLargeTrace(clickhouse, key, limit, abortSignal)
  return largeTraces.run(key.workspaceId, load, abortSignal)
}

/** Columns of a trace with the texts that a response shows. */
async function loadShown(
  client: ClickHouseClient,
  key: TraceKey,
  selection: Omit<ColumnsSelection, 'texts'>,
  abortSignal: AbortSignal,
): Promise<ShownColumns | undefined> {
  const texts = new RowTexts()
  const add = (row: ColumnsRow) => texts.add(row)
  const columns = await loadColumns(client, key, { ...selection, texts: 'shown' }, add, abortSignal)
  return columns && { ...columns, texts }
}

/** Loads a trace whole in one query. Returns undefined if nothing of it is retained. */
async function loadSmallTrace(
  client: ClickHouseClient,
  key: TraceKey,
  abortSignal: AbortSignal,
): Promise<ShownColumns | 'large' | undefined> {
  try {
    const selection = { maxRows: SMALL_TRACE_ROWS, maxBytes: SMALL_TRACE_BYTES }
    const found = await loadShown(client, key, selection, abortSignal)
    return found?.truncated ? 'large' : found
  } catch (error) {
    if (isClickHouseCode(error, OVER_LIMIT_CODES.result)) return 'large'
    throw error
  }
}

function renderSmallTrace({ traceId }: TraceKey, columns: ShownColumns, limit: number): Buffer {
  const { skeleton, arranged, texts } = columns
  // No byte of a text needs more than six in JSON, so most traces are below the limit without counting.
  const isFarBelow = 6 * texts.totalBytes <= RESPONSE_TEXT_BYTES
  const sizeOf = (row: number) => (isFarBelow ? 0 : texts.jsonBytes(row))
  const spans = chosenPositions(columns, sizeOf, limit).map(position => shownSpan(columns, position))
  return renderTrace(traceId, columns, spans, { ...arranged, truncated: spans.length < skeleton.size })
}

/** Loads a trace in two steps: all its rows without texts, and then the texts of the spans that are shown. */
async function loadLargeTrace(
  client: ClickHouseClient,
  key: TraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Buffer | undefined> {
  const all = await loadColumns(client, key, { texts: 'sizes', maxRows: EXAMINED_ROWS }, ignore, abortSignal)
  if (all === undefined) return undefined
  const { skeleton, arranged, facts } = all
  const chosen = chosenPositions(all, row => facts.textBytes[row] ?? 0, limit).map(position => shownSpan(all, position))
  const spanIds = chosen.map(({ number }) => skeleton.spanId(number))
  const shown = await loadShown(client, key, { spanIds, maxRows: spanIds.length }, abortSignal)
  // A row can expire between the two queries.
  if (shown === undefined) return undefined
  const numberOf = new Map(Array.from(shown.arranged.numbers, number => [shown.skeleton.spanId(number), number]))
  const spans = chosen.flatMap((span, i) => {
    const number = numberOf.get(spanIds[i] ?? '')
    return number === undefined ? [] : [{ ...span, number }]
  })
  const truncated = all.truncated || spans.length < skeleton.size
  // If only a part was examined, the end is that of the whole, and the start that of the part, which has the first spans.
  const extent = all.truncated ? await selectTraceExtent(client, key, abortSignal) : undefined
  const { endedAtUnixNano } = extent ?? arranged
  return renderTrace(key.traceId, shown, spans, { ...arranged, endedAtUnixNano, truncated })
}

/** Returns the positions of the spans to show, in the order of the response. */
function chosenPositions(columns: TraceColumns, sizeOf: (row: number) => number, limit: number): number[] {
  const { skeleton, arranged, facts } = columns
  const { parents, numbers } = arranged
  const isError = new Uint8Array(numbers.length)
  const sizes = new Uint32Array(numbers.length)
  numbers.forEach((number, position) => {
    const row = skeleton.rowOf(number)
    isError[position] = facts.statuses[row] === STATUS_ERROR ? 1 : 0
    sizes[position] = sizeOf(row)
  })
  return chooseSpans({ parents, isError, sizes }, limit, RESPONSE_TEXT_BYTES)
}

function shownSpan({ skeleton, arranged: { parents, numbers } }: TraceColumns, position: number): ShownSpan {
  const number = numbers[position] ?? 0
  return { number, isParentMissing: parents[position] === DANGLING, occurrenceCount: skeleton.occurrences(number) }
}
