import type { ReleaseBuildResult } from '../../../schemas/http/releases/schemas.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A row of `build_reports`. 64-bit numbers are decimal text; absent values are null. */
export interface BuildReportRow {
  readonly receivedAtMs: string
  /** Empty if it was not sent. */
  readonly result: ReleaseBuildResult | ''
  readonly discover: string | null
  readonly createRelease: string | null
  readonly upload: string | null
  readonly cleanup: string | null
  readonly total: string | null
  readonly fileCount: string | null
  readonly totalBytes: string | null
  readonly preflight: string | null
}

/** Identifies the reports of a release. Reports of other surfaces under the same slug are not included. */
interface BuildReportsKey {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly releaseSlug: string
}

/** Returns the last build reports of a release, the newest first. */
export function selectBuildReports(
  client: ClickHouseClient,
  key: BuildReportsKey,
  limit: number,
  signal: AbortSignal,
): Promise<BuildReportRow[]> {
  return selectRows<BuildReportRow>(client, {
    query: `
      SELECT toUnixTimestamp64Milli(received_at) AS receivedAtMs, result, discover, create_release AS createRelease,
             upload, cleanup, total, file_count AS fileCount, total_bytes AS totalBytes, preflight
      FROM build_reports
      WHERE workspace_id = {workspaceId: String} AND release_slug = {releaseSlug: String}
        AND surface_id = {surfaceId: String}
      ORDER BY received_at DESC LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}

/** Number of stack frames that a source map could resolve, and how many were resolved. */
export interface ReleaseFrameShare {
  readonly resolvedFrames: number
  readonly totalFrames: number
}

/**
 * Counts the stack frames of the retained variants of a release. Each counts once, as it was last resolved.
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
        GROUP BY variant_id)`,
    params: { workspaceId, releaseSlug },
    signal,
  })
  return { resolvedFrames: Number(share?.resolvedFrames ?? 0), totalFrames: Number(share?.totalFrames ?? 0) }
}
