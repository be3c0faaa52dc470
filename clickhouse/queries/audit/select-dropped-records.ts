import type { AdmittedQueue } from '../../../schemas/queues/names.ts'
import { BURNED_PREFIX } from '../../burn-token.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { AuditRange } from './select-request-balance.ts'

/** Records of one surface, kind and hour of arrival that a rule of the workspace has dropped. */
export interface DroppedOfHour {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly kind: AdmittedQueue
  /** Unix time of the hour in seconds. */
  readonly hour: number
  readonly rule: string
  readonly records: number
}

/** Returns the records of a range that rules have dropped, those of replayed dead letters included. */
export async function selectDroppedRecords(
  client: ClickHouseClient,
  { from, to, workspaceId, signal }: AuditRange,
): Promise<DroppedOfHour[]> {
  const rows = await selectRows<Omit<DroppedOfHour, 'records'> & { readonly records: string }>(client, {
    query: `
      SELECT toString(workspace_id) AS workspaceId, toString(surface_id) AS surfaceId, toString(l.signal) AS kind,
        toUnixTimestamp(toStartOfHour(received_at)) AS hour, counted.1 AS rule, sum(counted.2) AS records
      FROM ingest_log AS l ARRAY JOIN dropped AS counted
      WHERE received_at >= {from: DateTime} AND received_at < {to: DateTime}
        AND ({workspaceId: String} = '' OR workspace_id = {workspaceId: String})
        AND NOT startsWith(workspace_id, {burnedPrefix: String})
      GROUP BY ALL ORDER BY hour, workspaceId, surfaceId, kind, rule`,
    params: { from, to, workspaceId, burnedPrefix: BURNED_PREFIX },
    signal,
  })
  return rows.map(row => ({ ...row, records: Number(row.records) }))
}
