import { type ClickHouseClient, isClickHouseCode } from '../../clickhouse/client.ts'
import { selectSpansById } from '../../clickhouse/queries/traces/select-spans-by-id.ts'
import { selectTrace, type TraceKey } from '../../clickhouse/queries/traces/select-trace.ts'
import { type SkeletonRow, selectTraceSkeleton } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import type { SpanRow } from '../../clickhouse/queries/traces/span-row.ts'
import type { Trace } from '../../schemas/http/traces/schemas.ts'
import type { Budget } from '../../shared/concurrency/budget.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { millisecondsBetween } from '../http/format-time.ts'
import { chooseSpans, DANGLING } from './choose-spans.ts'
import { presentSpan } from './present-span.ts'
import { TraceSkeleton } from './trace-skeleton.ts'

export interface LoadTraceDeps {
  readonly clickhouse: ClickHouseClient
  /** Bounds how many large traces are in memory at once. */
  readonly largeTraces: Pick<Budget, 'run'>
}

/** A trace of up to so many stored rows is read whole by one query. Most have a few hundred. */
const SMALL_TRACE_ROWS = 5_000
/** The texts of one answer. A span whose texts alone are larger is left out like one over the limit. */
const ANSWER_TEXT_BYTES = 32 * 1024 * 1024
/** 65 MB of skeleton. A trace id that a client never changes grows without end: its trace is refused, not half told. */
const LARGE_TRACE_SPANS = 1_000_000

const TOO_MANY_ROWS_OR_BYTES = 396

/**
 * The answer of 4.9, with at most `limit` spans; undefined when nothing of the trace is retained. Throws a
 * TransientError when ClickHouse cannot be asked before the signal fires.
 */
export async function loadTrace(
  deps: LoadTraceDeps,
  key: TraceKey,
  limit: number,
  signal: AbortSignal,
): Promise<Trace | undefined> {
  const rows = await selectSmallTrace(deps.clickhouse, key, signal)
  if (rows === undefined) return deps.largeTraces.run(1, () => loadLargeTrace(deps, key, limit, signal), signal)
  const shown = new Map<string, SpanRow>()
  const skeleton = new TraceSkeleton()
  for (const row of rows) if (skeleton.add(skeletonOf(row)).isShown) shown.set(row.spanId, row)
  return assemble(key, skeleton, limit, async _spanIds => shown)
}

/** Undefined when there are more rows, or more bytes in them, than are taken in at once. */
async function selectSmallTrace(
  client: ClickHouseClient,
  key: TraceKey,
  signal: AbortSignal,
): Promise<SpanRow[] | undefined> {
  try {
    const rows = await selectTrace(client, key, SMALL_TRACE_ROWS + 1, signal)
    return rows.length > SMALL_TRACE_ROWS ? undefined : rows
  } catch (error) {
    if (isClickHouseCode(error, TOO_MANY_ROWS_OR_BYTES)) return undefined
    throw error
  }
}

async function loadLargeTrace(
  { clickhouse }: LoadTraceDeps,
  key: TraceKey,
  limit: number,
  signal: AbortSignal,
): Promise<Trace | undefined> {
  const skeleton = new TraceSkeleton()
  await selectTraceSkeleton(
    clickhouse,
    key,
    row => {
      skeleton.add(row)
      if (skeleton.size > LARGE_TRACE_SPANS) throw new TransientError(`the trace has over ${LARGE_TRACE_SPANS} spans`)
    },
    signal,
  )
  return assemble(key, skeleton, limit, async spanIds => {
    const rows = await selectSpansById(clickhouse, key, spanIds, signal)
    return new Map(rows.map(row => [row.spanId, row]))
  })
}

async function assemble(
  key: TraceKey,
  skeleton: TraceSkeleton,
  limit: number,
  rowsById: (spanIds: readonly string[]) => Promise<ReadonlyMap<string, SpanRow>>,
): Promise<Trace | undefined> {
  if (skeleton.size === 0) return undefined
  const { shape, numbers, ...whole } = skeleton.arrange()
  const positions = chooseSpans(shape, limit, ANSWER_TEXT_BYTES)
  const spanIds = positions.map(position => skeleton.spanId(numbers[position] ?? 0))
  const rows = await rowsById(spanIds)
  const spans = positions.flatMap((position, i) => {
    // A row can expire between the two queries.
    const row = rows.get(spanIds[i] ?? '')
    if (row === undefined) return []
    const occurrenceCount = skeleton.occurrences(numbers[position] ?? 0)
    return [presentSpan(row, { isParentMissing: shape.parents[position] === DANGLING, occurrenceCount })]
  })
  return {
    traceId: key.traceId,
    spans,
    rootCount: whole.rootCount,
    danglingParentCount: whole.danglingParentCount,
    startedAtUnixNano: String(whole.startedAtUnixNano),
    endedAtUnixNano: String(whole.endedAtUnixNano),
    wallDurationMs: millisecondsBetween(whole.startedAtUnixNano, whole.endedAtUnixNano),
    truncated: spans.length < skeleton.size,
  }
}

function skeletonOf(row: SpanRow): SkeletonRow {
  const { name, serviceName, statusMessage, sessionId, httpRoute } = row
  return {
    spanId: BigInt(`0x${row.spanId}`),
    parentSpanId: BigInt(`0x${row.parentSpanId}`),
    startTimeUnixNano: BigInt(row.startTimeUnixNano),
    endTimeUnixNano: BigInt(row.endTimeUnixNano),
    receivedAtUnixMs: BigInt(row.receivedAtUnixMs),
    digest: BigInt(row.digest),
    isError: row.statusCode === 2,
    textBytes: name.length + serviceName.length + statusMessage.length + sessionId.length + httpRoute.length,
  }
}
