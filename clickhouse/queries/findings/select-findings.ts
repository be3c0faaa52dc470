import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingRow, findingsQuery } from './finding-row.ts'

const QUERY = findingsQuery('workspace_id = {workspaceId: String} AND finding_id IN {findingIds: Array(String)}')

/** Returns the current state of these findings of a workspace, in no order. */
export async function selectFindings(
  client: ClickHouseClient,
  { workspaceId, findingIds }: { workspaceId: string; findingIds: readonly string[] },
  signal: AbortSignal,
): Promise<FindingRow[]> {
  if (findingIds.length === 0) return []
  return selectRows<FindingRow>(client, {
    query: QUERY,
    params: { workspaceId, findingIds },
    signal,
  })
}
