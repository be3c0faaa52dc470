import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { FindingKey } from './select-finding.ts'

/**
 * The frames of a finding as JSON (an array of FindingFrame): of the version that threw it last among those with a
 * resolved frame, else of the one that threw it last. Undefined when no stack of it was symbolicated.
 */
export async function selectFindingFrames(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<string | undefined> {
  const holding = '(rank, resolved_frame_count, occurred_at_unix_nano)'
  const [row] = await selectRows<{ frames: string }>(client, {
    query: `
      SELECT frames FROM (
        SELECT argMax(finding_frames.frames, ${holding}) AS frames,
               argMax(resolved_frame_count, ${holding}) > 0 AS isResolved,
               max(occurred_at_unix_nano) AS lastOccurredAt
        FROM finding_frames
        WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        GROUP BY service_version)
      ORDER BY isResolved DESC, lastOccurredAt DESC LIMIT 1`,
    params: { ...key },
    signal,
  })
  return row?.frames
}
