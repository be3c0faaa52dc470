import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'

/** What a surface has sent of one kind on one day (UTC). 64-bit numbers are decimal text. */
interface UsageRow {
  readonly day: string
  readonly surfaceId: string
  readonly signal: string
  readonly requests: string
  readonly bytes: string
  readonly records: string
  /** Number of values that scrubbing replaced, by the name of the rule. */
  readonly scrubbed: Readonly<Record<string, string>>
  /** Number of records that rules dropped, by the name of the rule. */
  readonly dropped: Readonly<Record<string, string>>
}

/** Identifies a row of the usage. */
type UsageKey = Pick<UsageRow, 'day' | 'surfaceId' | 'signal'>

/** Selects a page of the usage of a workspace. */
interface UsagePage {
  readonly workspaceId: string
  /** First and last day, `2026-11-21`. */
  readonly from: string
  readonly to: string
  readonly limit: number
  readonly after: UsageKey | undefined
}

/**
 * Returns what a workspace has sent, by day, surface and kind, the latest day first. A replay of a dead letter adds only its
 * scrubbed values and dropped records, because its request is counted already. Reads a row for each job and surface.
 */
export function selectUsage(
  client: ClickHouseClient,
  { workspaceId, from, to, limit, after }: UsagePage,
  signal: AbortSignal,
): Promise<UsageRow[]> {
  const isAfter = `(day < {day: Date} OR (day = {day: Date} AND (surface_id, signal) > ({surfaceId: String}, {signal: String})))`
  return selectRows<UsageRow>(client, {
    query: `
      WITH replayed_at = toDateTime64(0, 3, 'UTC') AS isSent
      SELECT toDate(received_at) AS day, surface_id AS surfaceId, signal,
             sumIf(payloads, isSent) AS requests, sumIf(ingest_log.bytes, isSent) AS bytes,
             sumIf(ingest_log.rows, isSent) AS records, sumMap(ingest_log.scrubbed) AS scrubbed,
             sumMap(ingest_log.dropped) AS dropped
      FROM ingest_log
      WHERE workspace_id = {workspaceId: String} AND toDate(received_at) >= {from: Date} AND toDate(received_at) <= {to: Date}
        ${after ? `AND ${isAfter}` : ''}
      GROUP BY day, surface_id, signal
      ORDER BY day DESC, surface_id, signal LIMIT {limit: UInt32}`,
    params: { workspaceId, from, to, limit, ...after },
    signal,
  })
}
