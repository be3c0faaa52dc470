import { type ClickHouseClient, readsTooMuch } from '../../../clickhouse/client.ts'
import {
  selectTracesOfAttribute,
  type TracesOfAttribute,
} from '../../../clickhouse/queries/traces/search/select-matching-traces.ts'
import {
  selectTraceCandidates,
  type TraceCandidates,
  type TracePosition,
} from '../../../clickhouse/queries/traces/search/select-trace-candidates.ts'
import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import type { BoundCondition } from '../../../clickhouse/select.ts'
import { dayOf, dayText } from '../../http/format-time.ts'

const DAY_NANOS = 86_400_000_000_000n
/** Days of arrival that are searched one after the other, the newest first, until the page is full. Older ones follow at once. */
const PERIOD_DAYS = [2, 4, 8]
/** A value is rare if no more traces have it in the searched days. */
const RARE_TRACES = 2_000

/** Selects traces whose attribute has a value. */
interface RareValueSearch {
  readonly workspaceId: string
  readonly filter: TraceFilter
  /** The trace after which the result begins. */
  readonly after: TracePosition
  readonly limit: number
  readonly nowMs: number
}

/** Traces with the value, the newest first. */
interface RareValueTraces {
  readonly found: readonly TracePosition[]
  /** Where the search continues, or undefined if it has reached the end. */
  readonly next: TracePosition | undefined
  /** Whether too many traces have the value for this search. Those before `next` are in `found` nevertheless. */
  readonly isFrequent: boolean
}

/**
 * Finds traces with a span that meets a condition on an attribute: their spans first, by the index of attributes, and then their
 * positions in the list. A trace with a position in a day has a span that arrived on it or later. With all later days, because
 * spans may arrive long after they started, and the day before for a matching span that arrived earlier, all traces of the day
 * are known whose matching span did not arrive earlier than that.
 */
export async function findRareValue(
  client: ClickHouseClient,
  { workspaceId, filter, after, limit, nowMs }: RareValueSearch,
  condition: BoundCondition,
  signal: AbortSignal,
): Promise<RareValueTraces> {
  const firstDay = Math.max(dayOfNano(filter.fromNano) - 1, 0)
  const lastDay = dayOfNano(BigInt(after.atUnixNano))
  const known = new Set<string>()
  const found: TracePosition[] = []
  let position = after
  let end: number | undefined
  for (const days of [...PERIOD_DAYS, Infinity]) {
    const from = Math.max((end ?? lastDay + 1) - days, firstDay)
    const search = {
      workspaceId,
      condition,
      days: { from: dayText(from), to: end === undefined ? undefined : dayText(end) },
      untilUnixNano: after.atUnixNano,
      limit: RARE_TRACES + 1,
    }
    const traceIds = await unlessTooMuch(client, search, signal)
    for (const traceId of traceIds ?? []) known.add(traceId)
    if (traceIds === undefined || known.size > RARE_TRACES) return { found, next: position, isFrequent: true }
    const sinceNano = from === firstDay ? filter.fromNano : BigInt(from + 1) * DAY_NANOS
    const positions = {
      workspaceId,
      filter: { ...filter, fromNano: sinceNano },
      after: position,
      traceIds: [...known],
      limit: limit - found.length,
      nowMs,
    }
    const page = known.size === 0 ? NONE : await selectTraceCandidates(client, positions, signal)
    found.push(...page.found)
    if (page.next !== undefined) return { found, next: page.next, isFrequent: false }
    if (from === firstDay) break
    position = { traceId: NO_TRACE, atUnixNano: String(sinceNano) }
    end = from
  }
  return { found, next: undefined, isFrequent: false }
}

/** The last one of those with the same time in the list. */
const NO_TRACE = '0'.repeat(32)
const NONE: TraceCandidates = { found: [], next: undefined }

/** Returns undefined if the search would read more than one may, which the value of a frequent attribute does. */
async function unlessTooMuch(
  client: ClickHouseClient,
  search: TracesOfAttribute,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    return await selectTracesOfAttribute(client, search, signal)
  } catch (error) {
    if (readsTooMuch(error)) return undefined
    throw error
  }
}

function dayOfNano(unixNano: bigint): number {
  return dayOf(Number(unixNano / 1_000_000n))
}
