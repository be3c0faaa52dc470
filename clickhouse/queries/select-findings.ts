import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'
import { FINDING_ROW, type FindingRow } from './finding-row.ts'

export interface FindingsPageKey {
  readonly workspaceId: string
  readonly limit: number
  /** The last one of the page before. */
  readonly after: { readonly lastSeenUnixNano: string; readonly id: string } | undefined
}

/** The findings of a workspace, the most recently seen first. */
export function selectFindings(
  client: ClickHouseClient,
  { workspaceId, limit, after }: FindingsPageKey,
  signal: AbortSignal,
): Promise<FindingRow[]> {
  const isAfter = '(lastSeenUnixNano, id) < ({lastSeenUnixNano: UInt64}, {id: String})'
  return selectRows<FindingRow>(client, {
    query: `SELECT ${FINDING_ROW} FROM findings WHERE workspace_id = {workspaceId: String} GROUP BY finding_id
            ${after ? `HAVING ${isAfter}` : ''} ORDER BY lastSeenUnixNano DESC, id DESC LIMIT {limit: UInt32}`,
    params: { workspaceId, limit, ...after },
    signal,
  })
}
