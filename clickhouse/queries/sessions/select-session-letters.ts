import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Identifies a dead letter of a session. */
interface SessionLetterRow {
  readonly receivedAtMs: number
  readonly jobId: string
  readonly index: number
}

/** Returns up to `limit` dead letters whose request names one of these sessions, behind those that are skipped. */
export async function selectSessionLetters(
  client: ClickHouseClient,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  { limit, offset }: { readonly limit: number; readonly offset: number },
  signal: AbortSignal,
): Promise<SessionLetterRow[]> {
  const rows = await selectRows<{ receivedAtMs: string; jobId: string; index: number }>(client, {
    query: `
      SELECT DISTINCT toUnixTimestamp64Milli(received_at) AS receivedAtMs, job_id AS jobId, job_index AS index
      FROM dead_letters
      WHERE workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}
      ORDER BY receivedAtMs, jobId, index LIMIT {limit: UInt32} OFFSET {offset: UInt32}`,
    params: { ...key, limit, offset },
    signal,
  })
  return rows.map(row => ({ ...row, receivedAtMs: Number(row.receivedAtMs) }))
}
