import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../clickhouse/client.ts'
import { type FindingTraceKey, selectFindingHasTrace } from '../../clickhouse/queries/findings/select-finding-traces.ts'
import { selectSpansById } from '../../clickhouse/queries/traces/select-spans-by-id.ts'
import { selectTrace, type TraceKey } from '../../clickhouse/queries/traces/select-trace.ts'
import { selectTraceEnd } from '../../clickhouse/queries/traces/select-trace-end.ts'
import { SKELETON_AT, selectTraceSkeleton } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import { COLUMN_AT, type SpanRows } from '../../clickhouse/queries/traces/span-rows.ts'
import { DAY_MS, MIB } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import { chooseSpans, DANGLING } from './choose-spans.ts'
import { renderTrace, textBytesOf } from './render-trace.ts'
import { EXAMINED_ROWS, TraceSkeleton } from './trace-skeleton.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  /** Returns the first day whose data of a kind is shown to readers of a workspace, in days since 1970. */
  readonly firstKeptDay: (workspaceId: string, kind: 'findings') => Promise<number>
  /** Bounds how many large traces are in memory at once. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/**
 * The most stored rows of a trace that one query reads whole, duplicates of spans included. Most traces have a few hundred. A
 * trace with more rows, or with more bytes than `selectTrace` accepts, waits for its turn (`largeTraces`) and is read in two
 * steps: the skeleton of all rows, then the rows that are shown. Its first rows are then read twice.
 */
const SMALL_TRACE_ROWS_MAX = 16_000
/** Limit of the texts in one response. A span whose texts alone are larger is left out, like one over the limit of spans. */
const RESPONSE_TEXT_BYTES = 8 * MIB

const STATUS_ERROR = 2

/**
 * Loads a trace with at most `limit` spans and returns it as JSON (docs/api/findings.md#trace). Returns undefined if nothing of the
 * trace is retained, or if the finding did not occur in it. Throws a TransientError if ClickHouse does not respond before the
 * signal fires.
 */
export async function loadTrace(
  deps: Deps,
  key: FindingTraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Buffer | undefined> {
  const found = await selectSmallTrace(deps.clickhouse, key, abortSignal)
  if (found?.rows.length === 0) return undefined
  const isOfFinding =
    found !== undefined && namesFinding(found, key, await deps.firstKeptDay(key.workspaceId, 'findings'))
  if (!isOfFinding && !(await selectFindingHasTrace(deps.clickhouse, key, abortSignal))) return undefined
  if (found !== undefined && found.rows.length <= SMALL_TRACE_ROWS_MAX) return assembleRows(key, found, limit)
  const load = () => loadLargeTrace(deps.clickhouse, key, limit, abortSignal)
  return deps.largeTraces.run(key.workspaceId, load, abortSignal)
}

/**
 * Returns whether a span of a day that findings are kept names the finding. A row of `finding_traces` of the same day has been
 * stored with it. A span that is older proves nothing: the occurrence has expired with its day.
 */
function namesFinding(found: SpanRows, { findingId }: FindingTraceKey, firstKeptDay: number): boolean {
  const keptSinceMs = firstKeptDay * DAY_MS
  return found.namingRows.some(
    ({ row, findingIds }) => findingIds.includes(findingId) && found.receivedAtMs(row) >= keptSinceMs,
  )
}

/** Returns the rows of a trace, one more than a small trace has at most, or undefined if they have too many bytes. */
async function selectSmallTrace(
  client: ClickHouseClient,
  key: TraceKey,
  abortSignal: AbortSignal,
): Promise<SpanRows | undefined> {
  try {
    return await selectTrace(client, key, SMALL_TRACE_ROWS_MAX + 1, abortSignal)
  } catch (error) {
    if (isClickHouseCode(error, OVER_LIMIT_CODES.result)) return undefined
    throw error
  }
}

/** Assembles a trace of which all rows are in memory. */
function assembleRows(key: TraceKey, rows: SpanRows, limit: number): Buffer | undefined {
  const skeleton = new TraceSkeleton({ keepsRows: true })
  // No byte of a text needs more than six in JSON, so most traces are below the limit without counting.
  const isFarBelow = 6 * rows.bytes.length <= RESPONSE_TEXT_BYTES
  for (const row of rows.rows) {
    const isError = rows.bytes[row + COLUMN_AT.statusCode] === STATUS_ERROR
    skeleton.add(rows.view, row, isFarBelow ? 0 : textBytesOf(rows, row), isError)
  }
  if (skeleton.size === 0) return undefined
  const { shape, numbers, ...whole } = skeleton.arrange()
  const spans = chooseSpans(shape, limit, RESPONSE_TEXT_BYTES).map(position => {
    const number = numbers[position] ?? 0
    return {
      row: skeleton.rowOf(number),
      isParentMissing: shape.parents[position] === DANGLING,
      occurrenceCount: skeleton.occurrences(number),
    }
  })
  return renderTrace(key.traceId, rows, spans, { ...whole, truncated: spans.length < skeleton.size })
}

/** Loads a trace in two steps: the skeleton of all its spans, and then the rows of those that are shown. */
async function loadLargeTrace(
  client: ClickHouseClient,
  key: TraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Buffer | undefined> {
  const skeleton = new TraceSkeleton({ keepsRows: false })
  let rowCount = 0
  const add = (view: DataView, row: number) => {
    if (++rowCount > EXAMINED_ROWS) return
    const isError = view.getUint8(row + SKELETON_AT.isError) === 1
    skeleton.add(view, row, view.getUint32(row + SKELETON_AT.textBytes, true), isError)
  }
  await selectTraceSkeleton(client, key, EXAMINED_ROWS + 1, add, abortSignal)
  if (skeleton.size === 0) return undefined
  const { shape, numbers, ...whole } = skeleton.arrange()
  const positions = chooseSpans(shape, limit, RESPONSE_TEXT_BYTES)
  const spanIds = positions.map(position => skeleton.spanId(numbers[position] ?? 0))
  const rows = await selectSpansById(client, key, spanIds, abortSignal)
  const rowOf = new Map<string, number>()
  for (const row of rows.rows) rowOf.set(rows.spanId(row), row)
  const spans = positions.flatMap((position, i) => {
    const row = rowOf.get(spanIds[i] ?? '')
    // A row can expire between the two queries.
    if (row === undefined) return []
    const occurrenceCount = skeleton.occurrences(numbers[position] ?? 0)
    return [{ row, isParentMissing: shape.parents[position] === DANGLING, occurrenceCount }]
  })
  if (rowCount <= EXAMINED_ROWS) {
    return renderTrace(key.traceId, rows, spans, { ...whole, truncated: spans.length < skeleton.size })
  }
  // Only a part was examined: the end is that of the whole, the start that of the part, which has the first spans.
  const endedAtUnixNano = await selectTraceEnd(client, key, abortSignal)
  return renderTrace(key.traceId, rows, spans, { ...whole, endedAtUnixNano, truncated: true })
}
