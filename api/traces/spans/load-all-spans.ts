import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../../clickhouse/client.ts'
import {
  type SizedSpanRow,
  type SpanDetailsRow,
  selectFirstSpanIds,
  selectSmallTrace,
} from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { TraceKey } from '../../../clickhouse/read-connection.ts'
import { MIB } from '../../../schemas/units.ts'
import { type LoadedSpans, loadSpans, RESPONSE_BYTES, SMALL_BYTES } from './load-spans.ts'

/** The first spans of a trace with everything that was received, in the order of their starts. */
export interface WholeTrace {
  readonly traceId: string
  readonly rows: readonly SpanDetailsRow[]
  /** Whether further spans are stored. */
  readonly truncated: boolean
}

/** Limits of a whole trace. */
interface WholeTraceLimits {
  readonly spans: number
  /** Bytes of the JSON of its spans, as ClickHouse writes it: texts of any column, and what each attribute and event adds. */
  readonly bytes: number
}

/** Limits of a trace that is read alone. */
export const WHOLE_TRACE: WholeTraceLimits = { spans: 5_000, bytes: 16 * MIB }

const BATCH_SPANS = 500

/**
 * Loads a trace with the details of its spans, unless it has more rows than a batch, or more than `SMALL_BYTES`: then returns
 * `large`. Returns undefined if nothing of it is retained.
 */
export async function loadSmallTrace(
  clickhouse: ClickHouseClient,
  key: TraceKey,
  signal: AbortSignal,
): Promise<WholeTrace | 'large' | undefined> {
  const small = await tryLoadSmallTrace(clickhouse, key, BATCH_SPANS, signal)
  return small === undefined ? 'large' : wholeOf(key, keptOf(small, WHOLE_TRACE))
}

/** Loads a trace of any size, up to `WHOLE_TRACE`, or returns undefined if nothing of it is retained. */
export async function loadLargeTrace(
  clickhouse: ClickHouseClient,
  key: TraceKey,
  signal: AbortSignal,
): Promise<WholeTrace | undefined> {
  const trace = await findSpans(clickhouse, key, WHOLE_TRACE.spans, signal)
  if (trace === undefined) return undefined
  const kept = new KeptSpans(trace, WHOLE_TRACE.bytes)
  for (const batch of kept.batches()) {
    kept.add(await loadSpans(clickhouse, key, batch, RESPONSE_BYTES, signal))
  }
  return wholeOf(key, kept)
}

/**
 * Loads the first spans of a trace, one of many in a response, or returns undefined if nothing is retained. It waits for no slot,
 * because it has no more than `SMALL_BYTES` besides the rows that it keeps.
 */
export async function loadFirstSpans(
  clickhouse: ClickHouseClient,
  key: TraceKey,
  limits: WholeTraceLimits,
  signal: AbortSignal,
): Promise<WholeTrace | undefined> {
  const small = await tryLoadSmallTrace(clickhouse, key, Math.min(BATCH_SPANS, limits.spans), signal)
  if (small !== undefined) return wholeOf(key, keptOf(small, limits))
  const trace = await findSpans(clickhouse, key, limits.spans, signal)
  if (trace === undefined) return undefined
  const kept = new KeptSpans(trace, limits.bytes)
  for (const batch of kept.batches()) {
    kept.add(await loadSpans(clickhouse, key, batch, SMALL_BYTES, signal))
  }
  return wholeOf(key, kept)
}

/** Loads a trace in one query, or returns undefined if it has more stored rows than `maxRows`, or more than `SMALL_BYTES`. */
async function tryLoadSmallTrace(
  clickhouse: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<readonly SizedSpanRow[] | undefined> {
  try {
    return await selectSmallTrace(clickhouse, key, { maxRows, resultBytes: SMALL_BYTES }, signal)
  } catch (error) {
    const { result, memory } = OVER_LIMIT_CODES
    if (![result, memory].some(code => isClickHouseCode(error, code))) throw error
    return undefined
  }
}

function keptOf(spans: readonly SizedSpanRow[], limits: WholeTraceLimits): KeptSpans {
  // No spans are left to load.
  const kept = new KeptSpans({ spanIds: [], truncated: false }, limits.bytes)
  kept.keep(spans)
  return kept
}

interface FoundSpans {
  readonly spanIds: readonly string[]
  /** Whether the trace has more. */
  readonly truncated: boolean
}

async function findSpans(
  clickhouse: ClickHouseClient,
  key: TraceKey,
  limit: number,
  signal: AbortSignal,
): Promise<FoundSpans | undefined> {
  const spanIds = await selectFirstSpanIds(clickhouse, key, limit + 1, signal)
  if (spanIds.length === 0) return undefined
  return { spanIds: spanIds.slice(0, limit), truncated: spanIds.length > limit }
}

/** The rows of spans, up to a number of bytes. */
class KeptSpans {
  readonly rows: SpanDetailsRow[] = []
  #rest: readonly string[]
  #bytesLeft: number
  #isCut: boolean

  constructor({ spanIds, truncated }: FoundSpans, limitBytes: number) {
    this.#rest = spanIds
    this.#isCut = truncated
    this.#bytesLeft = limitBytes
  }

  get truncated(): boolean {
    return this.#isCut
  }

  /** Yields ids of spans to load and to add, until all are loaded or one does not fit. */
  *batches(): Generator<readonly string[]> {
    while (this.#rest.length > 0 && this.#bytesLeft >= 0) {
      const batch = this.#rest.slice(0, BATCH_SPANS)
      this.#rest = this.#rest.slice(BATCH_SPANS)
      yield batch
    }
  }

  add({ spans, rest, tooLarge }: LoadedSpans): void {
    this.#rest = [...rest, ...this.#rest]
    this.#isCut ||= tooLarge.length > 0
    this.keep(spans)
  }

  keep(spans: readonly SizedSpanRow[]): void {
    for (const { row, bytes } of spans) {
      this.#bytesLeft -= bytes
      if (this.#bytesLeft < 0) {
        this.#isCut = true
        break
      }
      this.rows.push(row)
    }
  }
}

/** Returns undefined if the spans have gone since they were found. */
function wholeOf({ traceId }: TraceKey, { rows, truncated }: KeptSpans): WholeTrace | undefined {
  return rows.length === 0 && !truncated ? undefined : { traceId, rows, truncated }
}
