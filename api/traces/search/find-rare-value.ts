import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectTracesOfAttribute } from '../../../clickhouse/queries/traces/search/select-matching-traces.ts'
import {
  selectTraceCandidates,
  type TracePosition,
} from '../../../clickhouse/queries/traces/search/select-trace-candidates.ts'
import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import type { BoundCondition } from '../../../clickhouse/select.ts'

const DAY_NANOS = 86_400_000_000_000n
/** Days of arrival that are searched one after the other, the newest first, until the page is full. Older ones follow at once. */
const PERIOD_DAYS = [2, 4, 8]
/** A value is rare if no more traces have it in the searched days. */
const RARE_TRACES = 2_000

/** Selects traces whose attribute has a value. */
export interface RareValueSearch {
  readonly workspaceId: string
  readonly filter: TraceFilter
  /** The trace after which the result begins. */
  readonly after: TracePosition
  readonly limit: number
  readonly nowMs: number
}

/** Traces with the value, the newest first. */
export interface RareValueTraces {
  readonly found: readonly TracePosition[]
  /** Where the search continues, or undefined if it has reached the end. */
  readonly next: TracePosition | undefined
  /** Whether too many traces have the value for this search. Those before `next` are found all the same. */
  readonly isFrequent: boolean
}

/**
 * Finds traces with a span that meets a condition on an attribute: their spans first, by the index of attributes, and then their
 * places in the list. A trace with a place in a day has a span that arrived on it or later, so that with the days after and
 * the one before, for a span that arrived earlier, all traces of the day are known.
 */
export async function findRareValue(
  client: ClickHouseClient,
  { workspaceId, filter, after, limit, nowMs }: RareValueSearch,
  condition: BoundCondition,
  signal: AbortSignal,
): Promise<RareValueTraces> {
  const firstDay = Math.max(dayOf(filter.fromNano) - 1, 0)
  const known = new Set<string>()
  const found: TracePosition[] = []
  let position = after
  let end: number | undefined
  for (const days of [...PERIOD_DAYS, Infinity]) {
    const from = Math.max((end ?? dayOf(BigInt(after.atUnixNano)) + 1) - days, firstDay)
    const search = { workspaceId, condition, days: { from, to: end }, limit: RARE_TRACES + 1 }
    for (const traceId of await selectTracesOfAttribute(client, search, signal)) known.add(traceId)
    if (known.size > RARE_TRACES) return { found, next: position, isFrequent: true }
    const sinceNano = from === firstDay ? filter.fromNano : BigInt(from + 1) * DAY_NANOS
    const placed = { ...filter, fromNano: sinceNano }
    const places = {
      workspaceId,
      filter: placed,
      after: position,
      traceIds: [...known],
      limit: limit - found.length,
      nowMs,
    }
    const page = await selectTraceCandidates(client, places, signal)
    found.push(...page.found)
    if (page.next !== undefined) return { found, next: page.next, isFrequent: false }
    if (from === firstDay) break
    position = { traceId: NO_TRACE, atUnixNano: String(sinceNano) }
    end = from
  }
  return { found, next: undefined, isFrequent: false }
}

/** Before a trace at the same time, and so after all others of the list. */
const NO_TRACE = '0'.repeat(32)

function dayOf(unixNano: bigint): number {
  return Number(unixNano / DAY_NANOS)
}
