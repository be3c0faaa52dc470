import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { AuditRange } from './select-request-balance.ts'

/** An object that rows name. */
export interface NamedObject {
  readonly objectKey: string
  readonly table: string
  readonly workspaceId: string
  readonly surfaceId: string
  /** Unix time of the first hour of arrival, in seconds. */
  readonly hour: number
  /** The least size of the object in bytes. */
  readonly leastBytes: number
}

const SOURCES = `
  SELECT object_key, 'replay_chunks' AS source, workspace_id, surface_id, received_at, toUInt64(stored_bytes) AS bytes
  FROM replay_chunks WHERE received_at >= {from: DateTime} AND received_at < {to: DateTime}
  UNION ALL
  SELECT object_key, 'dead_letters', workspace_id, surface_id, received_at, object_offset + object_length
  FROM dead_letters WHERE received_at >= {from: DateTime} AND received_at < {to: DateTime} AND object_key != ''`

/** Returns up to `limit` objects that rows of a range name, in the order of their keys, after a key. */
export async function selectObjectKeys(
  client: ClickHouseClient,
  { from, to, workspaceId, signal }: AuditRange,
  after: string,
  limit: number,
): Promise<NamedObject[]> {
  const rows = await selectRows<{ key: string; source: string; ws: string; srf: string; at: number; bytes: string }>(
    client,
    {
      query: `
      SELECT object_key AS key, any(source) AS source, any(toString(workspace_id)) AS ws, any(toString(surface_id)) AS srf,
        toUnixTimestamp(toStartOfHour(min(received_at))) AS at, max(bytes) AS bytes
      FROM (${SOURCES})
      WHERE object_key > {after: String} AND ({workspaceId: String} = '' OR workspace_id = {workspaceId: String})
      GROUP BY key ORDER BY key LIMIT {limit: UInt32}`,
      params: { from, to, workspaceId, after, limit },
      signal,
    },
  )
  return rows.map(({ key, source, ws, srf, at, bytes }) => ({
    objectKey: key,
    table: source,
    workspaceId: ws,
    surfaceId: srf,
    hour: at,
    leastBytes: Number(bytes),
  }))
}
