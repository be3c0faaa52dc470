import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'
import type { FindingKey } from './select-finding.ts'

/**
 * Returns the stack frames of a finding as JSON (an array of FindingFrame). They are from the version that threw the
 * finding last among versions with a resolved frame, else from the version that threw it last. Returns undefined if no
 * stack of the finding was symbolicated.
 */
export async function selectFindingFrames(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<string | undefined> {
  // As in `findings` (migration 0014), a time in the future counts as five minutes after the arrival at most.
  const seenAt = 'least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000)'
  const precedence = `(rank, resolved_frame_count, ${seenAt})`
  const [row] = await selectRows<{ frames: string }>(client, {
    query: `
      SELECT frames FROM (
        SELECT argMax(finding_frames.frames, ${precedence}) AS frames,
               argMax(resolved_frame_count, ${precedence}) > 0 AS isResolved,
               max(${seenAt}) AS lastOccurredAt
        FROM finding_frames
        WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        GROUP BY service_version)
      ORDER BY isResolved DESC, lastOccurredAt DESC LIMIT 1`,
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row?.frames
}
