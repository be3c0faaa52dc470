import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { below, createRandom } from '../payloads/zipf.ts'

/** A stored trace, with values to search for. */
export interface StoredTrace {
  readonly workspaceId: string
  readonly traceId: string
  readonly spans: number
  readonly service: string
  readonly sessionId: string
  /** Value of `url.path` that no other trace has. */
  readonly path: string
  /** Unix milliseconds at which its first span starts. */
  readonly startMs: number
}

/** Ids of a trace to read. */
export interface TraceTarget {
  readonly workspaceId: string
  readonly findingId: string
  readonly traceId: string
  readonly spans: number
}

/** Number of filled workspaces. */
export const WORKSPACES = 20
/** Number of filled days, unless a measurement needs another one. */
export const DAYS = 7
/** Spans of a small trace. */
export const SMALL_TRACE_SPANS = 20
/** Spans of a large trace. */
export const LARGE_TRACE_SPANS = 1_000

/**
 * The largest number of parts a day that merges were seen to leave, whatever their size. Inserts of 10,000 and of 100,000
 * rows, with 1.4 and 14 million rows a day, ended with 4 to 8 parts.
 */
export const PARTS_PER_DAY = 8

/** Returns the id of a filled workspace. */
export const workspaceId = (number: number) => `ws_${String(number).padStart(2, '0')}`

/** Picks up to `limit` items pseudo-randomly, the same in every run. */
export function pick<T>(items: readonly T[], limit: number): T[] {
  const random = createRandom(items.length)
  const rest = [...items]
  for (let i = 0; i < Math.min(limit, rest.length); i++) {
    const other = i + below(random, rest.length - i)
    const item = rest[i] as T
    rest[i] = rest[other] as T
    rest[other] = item
  }
  return rest.slice(0, limit)
}

/** Returns the ids to read traces with. Each has a finding. */
export async function targetsOf(client: ClickHouseClient, traces: readonly StoredTrace[]): Promise<TraceTarget[]> {
  const result = await client.query({
    query: `SELECT any(finding_id) AS findingId, lower(hex(trace_id)) AS traceId FROM exceptions
            WHERE traceId IN {traceIds: Array(String)} GROUP BY traceId`,
    query_params: { traceIds: traces.map(({ traceId }) => traceId) },
    format: 'JSONEachRow',
  })
  const rows = await result.json<{ findingId: string; traceId: string }>()
  const findings = new Map(rows.map(({ traceId, findingId }) => [traceId, findingId]))
  return traces.map(({ workspaceId, traceId, spans }) => {
    const findingId = findings.get(traceId)
    if (findingId === undefined) throw new Error(`the trace ${traceId} has no finding`)
    return { workspaceId, traceId, findingId, spans }
  })
}
