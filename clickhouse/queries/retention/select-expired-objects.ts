import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { RetentionGroup } from './select-expired-days.ts'

/** The object of rows that expire. */
export interface ExpiredObject {
  readonly workspaceId: string
  readonly sessionId: string
  readonly objectKey: string
}

/** Selects a page of the objects of one day. */
interface ExpiredObjectsKey extends RetentionGroup {
  readonly table: 'replay_chunks' | 'dead_letters'
  readonly day: string
  /** The last object of the previous page. */
  readonly after: ExpiredObject | undefined
  readonly limit: number
}

/**
 * Returns a page of the objects that only rows of this day name, in the order of workspace, session and key. An object
 * that a row of a later day names too was uploaded again, and stays.
 */
export function selectExpiredObjects(
  client: ClickHouseClient,
  { table, day, workspaceIds, after, limit }: ExpiredObjectsKey,
  signal: AbortSignal,
): Promise<ExpiredObject[]> {
  const isAfter = `AND (workspace_id, session_id, object_key)
    > ({afterWorkspace: String}, {afterSession: String}, {afterKey: String})`
  return selectRows<ExpiredObject>(client, {
    query: `
      SELECT DISTINCT workspace_id AS workspaceId, session_id AS sessionId, object_key AS objectKey
      FROM ${table}
      WHERE toDate(received_at) = toDate({day: String}) AND workspace_id IN {workspaceIds: Array(String)}
        AND object_key != '' ${after ? isAfter : ''}
        AND (workspace_id, object_key) NOT IN (
          SELECT workspace_id, object_key FROM ${table}
          WHERE toDate(received_at) > toDate({day: String}) AND workspace_id IN {workspaceIds: Array(String)}
            ${after ? 'AND workspace_id >= {afterWorkspace: String}' : ''}
            AND session_id IN (
              SELECT session_id FROM ${table}
              WHERE toDate(received_at) = toDate({day: String}) AND workspace_id IN {workspaceIds: Array(String)}))
      ORDER BY workspaceId, sessionId, objectKey LIMIT {limit: UInt32}`,
    params: {
      day,
      workspaceIds,
      limit,
      afterWorkspace: after?.workspaceId,
      afterSession: after?.sessionId,
      afterKey: after?.objectKey,
    },
    signal,
  })
}
