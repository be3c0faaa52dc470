import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { RetainedTable } from './retained-tables.ts'

/** Workspaces with the same retention. */
export interface RetentionGroup {
  readonly workspaceIds: readonly string[]
  /** The first day that is kept, in days since 1970. */
  readonly firstKeptDay: number
}

/** Returns the days of a table, `2026-11-22`, with rows of these workspaces that are past their retention, the oldest first. */
export async function selectExpiredDays(
  client: ClickHouseClient,
  { table, day }: RetainedTable,
  { workspaceIds, firstKeptDay }: RetentionGroup,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ expiredDay: string }>(client, {
    query: `
      SELECT DISTINCT toString(${day}) AS expiredDay FROM ${table}
      WHERE workspace_id IN {workspaceIds: Array(String)} AND ${day} < toDate({firstKeptDay: UInt32})
      ORDER BY expiredDay`,
    params: { workspaceIds, firstKeptDay },
    signal,
  })
  return rows.map(({ expiredDay }) => expiredDay)
}
