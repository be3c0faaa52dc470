import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { FINDING_ROW, type FindingRow } from './finding-row.ts'

/** Returns the current state of these findings of a workspace, in no order. */
export async function selectFindings(
  client: ClickHouseClient,
  { workspaceId, findingIds }: { workspaceId: string; findingIds: readonly string[] },
  signal: AbortSignal,
): Promise<FindingRow[]> {
  if (findingIds.length === 0) return []
  return selectRows<FindingRow>(client, {
    query: `SELECT ${FINDING_ROW} FROM findings
            WHERE workspace_id = {workspaceId: String} AND finding_id IN {findingIds: Array(String)}
            GROUP BY finding_id`,
    params: { workspaceId, findingIds },
    signal,
  })
}
