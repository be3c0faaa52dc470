import { type ClickHouseClient, isClickHouseCode } from '../../clickhouse/client.ts'
import { selectSpansById } from '../../clickhouse/queries/traces/select-spans-by-id.ts'
import { selectTrace, type TraceKey } from '../../clickhouse/queries/traces/select-trace.ts'
import { selectTraceEnd } from '../../clickhouse/queries/traces/select-trace-end.ts'
import { type SkeletonRow, selectTraceSkeleton } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import type { SpanRow } from '../../clickhouse/queries/traces/span-row.ts'
import { HttpStatusColumn } from '../../clickhouse/tables/http-status-column.ts'
import type { Trace, TraceSpan } from '../../schemas/http/traces/schemas.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import { millisecondsBetween, millisecondsBetweenTexts, rfc3339FromNanoText } from '../http/format-time.ts'
import { chooseSpans, DANGLING } from './choose-spans.ts'
import { TraceSkeleton } from './trace-skeleton.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  /** Bounds how many large traces are in memory at once. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** A trace of at most this many stored rows is read whole by one query. Most have a few hundred. */
const SMALL_TRACE_ROWS = 5_000
/** Limit of the texts in one response. A span whose texts alone are larger is left out, like one over the limit of spans. */
const RESPONSE_TEXT_BYTES = 8 * 1024 * 1024
/**
 * Limit of the stored rows of a trace that are examined, at which reading it takes 70 MB and 1.3 s of CPU. A trace grows
 * without end if a client never changes its trace id, and a client that knows a trace id can add spans to it. The first rows
 * by start are examined, because most parents start before their children.
 */
const EXAMINED_ROWS = 1_000_000

const TOO_MANY_ROWS_OR_BYTES = 396

/**
 * Loads a trace with at most `limit` spans (docs/contract.md#trace). Returns undefined if nothing of the trace is retained.
 * Throws a TransientError if ClickHouse does not respond before the signal fires.
 */
export async function loadTrace(
  deps: Deps,
  key: TraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Trace | undefined> {
  const rows = await selectSmallTrace(deps.clickhouse, key, abortSignal)
  if (rows === undefined) {
    return deps.largeTraces.run(
      key.workspaceId,
      () => loadLargeTrace(deps.clickhouse, key, limit, abortSignal),
      abortSignal,
    )
  }
  const shown = new Map<string, SpanRow>()
  const skeleton = new TraceSkeleton()
  for (const row of rows) if (skeleton.add(skeletonOf(row)).isShown) shown.set(row.spanId, row)
  return assemble(key, skeleton, limit, async _spanIds => shown)
}

/** Returns all rows of a trace, or undefined if it has more rows or bytes than one query may return. */
async function selectSmallTrace(
  client: ClickHouseClient,
  key: TraceKey,
  abortSignal: AbortSignal,
): Promise<SpanRow[] | undefined> {
  try {
    const rows = await selectTrace(client, key, SMALL_TRACE_ROWS + 1, abortSignal)
    return rows.length > SMALL_TRACE_ROWS ? undefined : rows
  } catch (error) {
    if (isClickHouseCode(error, TOO_MANY_ROWS_OR_BYTES)) return undefined
    throw error
  }
}

/** Loads a trace in two steps: the skeleton of all its spans, and then the rows of those that are shown. */
async function loadLargeTrace(
  client: ClickHouseClient,
  key: TraceKey,
  limit: number,
  abortSignal: AbortSignal,
): Promise<Trace | undefined> {
  const skeleton = new TraceSkeleton()
  let rowCount = 0
  await selectTraceSkeleton(
    client,
    key,
    EXAMINED_ROWS + 1,
    row => {
      if (++rowCount <= EXAMINED_ROWS) skeleton.add(row)
    },
    abortSignal,
  )
  const isWhole = rowCount <= EXAMINED_ROWS
  const trace = await assemble(key, skeleton, limit, async spanIds => {
    const rows = await selectSpansById(client, key, spanIds, abortSignal)
    return new Map(rows.map(row => [row.spanId, row]))
  })
  return trace === undefined || isWhole ? trace : withWholeEnd(trace, await selectTraceEnd(client, key, abortSignal))
}

/** Returns a trace of which only a part was examined, with the end of the whole. Its start is that of the part. */
function withWholeEnd(trace: Trace, endedAt: bigint): Trace {
  return {
    ...trace,
    endedAtUnixNano: String(endedAt),
    wallDurationMs: millisecondsBetween(BigInt(trace.startedAtUnixNano), endedAt),
    truncated: true,
  }
}

async function assemble(
  key: TraceKey,
  skeleton: TraceSkeleton,
  limit: number,
  rowsById: (spanIds: readonly string[]) => Promise<ReadonlyMap<string, SpanRow>>,
): Promise<Trace | undefined> {
  if (skeleton.size === 0) return undefined
  const { shape, numbers, ...whole } = skeleton.arrange()
  const positions = chooseSpans(shape, limit, RESPONSE_TEXT_BYTES)
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
    textBytes:
      jsonBytes(name) + jsonBytes(serviceName) + jsonBytes(statusMessage) + sessionId.length + jsonBytes(httpRoute),
  }
}

/** Returns the bytes of a text in JSON. The exact number matters only where texts are long. */
function jsonBytes(text: string): number {
  return text.length < SHORT_TEXT ? 2 * text.length : Buffer.byteLength(JSON.stringify(text))
}

/** The shown spans of a trace have up to 10,000 texts, so texts of this length cannot exceed the limit of a response. */
const SHORT_TEXT = 128

/** OTLP's SpanKind and StatusCode by their numbers. A number that OTLP does not define is shown as the first. */
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'] as const

const NO_PARENT = '0000000000000000'
const HTTP_STATUS_CODE_MAX = 32_767

interface SpanContext {
  /** Whether the span has a parent that is not retained in the trace. */
  readonly isParentMissing: boolean
  readonly occurrenceCount: number
}

function presentHttpStatus(stored: number): number | undefined {
  if (stored === HttpStatusColumn.zero) return 0
  return stored === HttpStatusColumn.none || stored > HTTP_STATUS_CODE_MAX ? undefined : stored
}

/**
 * Returns a stored row as a span of the response (docs/contract.md#trace); JSON leaves out what is undefined. All spans are
 * objects of one shape, and times are cut from their decimal text, so that 1,000 spans take 0.2 ms instead of 1.0.
 */
function presentSpan(row: SpanRow, { isParentMissing, occurrenceCount }: SpanContext): TraceSpan {
  const { parentSpanId, statusMessage, sessionId, httpRoute, httpStatusCode } = row
  const hasParent = parentSpanId !== NO_PARENT
  return {
    spanId: row.spanId,
    parentSpanId: hasParent && !isParentMissing ? parentSpanId : undefined,
    danglingParentSpanId: hasParent && isParentMissing ? parentSpanId : undefined,
    name: row.name,
    kind: KINDS[row.kind] ?? KINDS[0],
    serviceName: row.serviceName,
    startTimeUnixNano: row.startTimeUnixNano,
    endTimeUnixNano: row.endTimeUnixNano,
    durationMs: millisecondsBetweenTexts(row.startTimeUnixNano, row.endTimeUnixNano),
    statusCode: STATUS_CODES[row.statusCode] ?? STATUS_CODES[0],
    statusMessage: statusMessage === '' ? undefined : statusMessage,
    sessionId: sessionId === '' ? undefined : sessionId,
    httpRoute: httpRoute === '' ? undefined : httpRoute,
    httpStatusCode: presentHttpStatus(httpStatusCode),
    occurrenceCount,
    timestamp: rfc3339FromNanoText(row.startTimeUnixNano),
  }
}
