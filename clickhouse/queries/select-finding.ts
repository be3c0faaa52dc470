import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'
import { FINDING_ROW, type FindingRow } from './finding-row.ts'

export interface FindingKey {
  readonly workspaceId: string
  readonly findingId: string
}

export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingRow | undefined> {
  const rows = await selectRows<FindingRow>(client, {
    query: `SELECT ${FINDING_ROW} FROM findings
            WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String} GROUP BY finding_id`,
    params: { ...key },
    signal,
  })
  return rows[0]
}
