import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'
import { FINDING_ROW, type FindingRow } from './finding-row.ts'

export interface FindingsPageKey {
  readonly workspaceId: string
  readonly limit: number
  /** The last one of the page before. */
  readonly after: { readonly lastSeenUnixNano: string; readonly id: string } | undefined
}

/**
 * The findings of a workspace, the most recently seen first. Which of them are on the page is found without touching
 * their texts.
 */
export function selectFindings(
  client: ClickHouseClient,
  { workspaceId, limit, after }: FindingsPageKey,
  signal: AbortSignal,
): Promise<FindingRow[]> {
  const isAfter = '(lastSeen, finding_id) < ({lastSeenUnixNano: UInt64}, {id: String})'
  return selectRows<FindingRow>(client, {
    query: `
      SELECT ${FINDING_ROW} FROM findings
      WHERE workspace_id = {workspaceId: String} AND finding_id IN (
        SELECT finding_id FROM (
          SELECT finding_id, max(last_seen_unix_nano) AS lastSeen FROM findings
          WHERE workspace_id = {workspaceId: String} GROUP BY finding_id ${after ? `HAVING ${isAfter}` : ''}
          ORDER BY lastSeen DESC, finding_id DESC LIMIT {limit: UInt32}))
      GROUP BY finding_id ORDER BY lastSeenUnixNano DESC, id DESC`,
    params: { workspaceId, limit, ...after },
    signal,
  })
}
