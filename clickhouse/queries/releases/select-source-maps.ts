import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** The map of a script with a debug id. */
export interface SourceMapRow {
  readonly debugId: string
  readonly releaseSlug: string
  /** Of the manifest that names it, as decimal text. */
  readonly sequence: string
  readonly sha256: string
  readonly size: number
}

/** The maps with these debug ids, one each: that of the latest manifest. Only those of this surface. */
export function selectSourceMaps(
  client: ClickHouseClient,
  key: { workspaceId: string; surfaceId: string; debugIds: readonly string[] },
  signal: AbortSignal,
): Promise<SourceMapRow[]> {
  return selectRows<SourceMapRow>(client, {
    query: `
      SELECT debug_id AS debugId, release_slug AS releaseSlug, sequence, sha256, size
      FROM source_maps
      WHERE workspace_id = {workspaceId: String} AND surface_id = {surfaceId: String}
        AND debug_id IN {debugIds: Array(String)}
      ORDER BY debug_id, source_maps.sequence DESC LIMIT 1 BY debug_id`,
    params: { ...key },
    signal,
  })
}
