import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'

/**
 * Returns the hours of arrival, in hours since 1970, in which spans of a workspace were lost in a way that `selectTraceLosses` may
 * find: at most as many as are retained. What a loss comes from is read there.
 */
export async function selectSpanLossHours(
  client: ClickHouseClient,
  workspaceId: string,
  signal: AbortSignal,
): Promise<ReadonlySet<number>> {
  const [row] = await selectRows<{ hours: readonly number[] }>(client, {
    query: `
      SELECT groupUniqArray(intDiv(toUnixTimestamp(received_hour), 3600)) AS hours FROM span_loss_hours
      WHERE workspace_id = {workspaceId: String}`,
    params: { workspaceId },
    signal,
    // A few rows.
    settings: { max_threads: 1 },
  })
  return new Set(row?.hours)
}
