import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Of the stack frames that a source map could resolve, how many were. */
export interface ReleaseFrameShare {
  readonly resolvedFrames: number
  readonly totalFrames: number
}

/**
 * The frames of a release's retained findings, each finding counted once, as it was last resolved. Reads the rows of this
 * release alone.
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
