import type { ClickHouseClient } from '../../client.ts'
import { type FindingRow, selectFindingRows } from './finding-row.ts'

const CONDITION = 'workspace_id = {workspaceId: String} AND finding_id IN {findingIds: Array(String)}'

/** Returns the current state of these findings of a workspace, in no order. */
export async function selectFindings(
  client: ClickHouseClient,
  params: { readonly workspaceId: string; readonly findingIds: readonly string[] },
  signal: AbortSignal,
): Promise<FindingRow[]> {
  if (params.findingIds.length === 0) return []
  return selectFindingRows(client, { condition: CONDITION, params }, {}, signal)
}
