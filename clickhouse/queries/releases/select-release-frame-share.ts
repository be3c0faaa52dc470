import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Number of stack frames that a source map could resolve, and how many were resolved. */
export interface ReleaseFrameShare {
  readonly resolvedFrames: number
  readonly totalFrames: number
}

/**
 * Counts the stack frames of the retained findings of a release. Each finding counts once, as it was last resolved.
 * Only rows of this release are read.
 */
export async function selectReleaseFrameShare(
  client: ClickHouseClient,
  { workspaceId, releaseSlug }: { workspaceId: string; releaseSlug: string },
  signal: AbortSignal,
): Promise<ReleaseFrameShare> {
  const [share] = await selectRows<{ resolvedFrames: string; totalFrames: string }>(client, {
    query: `
      SELECT sum(resolved) AS resolvedFrames, sum(total) AS totalFrames FROM (
        SELECT argMax(resolved_frame_count, (rank, day)) AS resolved, argMax(frame_count, (rank, day)) AS total
        FROM release_frames
        WHERE workspace_id = {workspaceId: String} AND release_slug = {releaseSlug: String}
        GROUP BY finding_id, service_version)`,
    params: { workspaceId, releaseSlug },
    signal,
  })
  return { resolvedFrames: Number(share?.resolvedFrames ?? 0), totalFrames: Number(share?.totalFrames ?? 0) }
}
