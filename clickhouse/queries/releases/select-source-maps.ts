import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** The source map of a script with a debug id. */
export interface SourceMapRow {
  readonly debugId: string
  readonly releaseSlug: string
  /** Sequence of the manifest that contains the map, as decimal text. */
  readonly sequence: string
  readonly sha256: string
  readonly size: number
}

/** Returns the maps of this surface with these debug ids, one for each id, from the latest manifest. */
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
