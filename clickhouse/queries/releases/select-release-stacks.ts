import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** The latest stack of a finding, as one version of its service threw it. */
export interface ReleaseStackRow {
  readonly findingId: string
  readonly serviceVersion: string
  readonly stacktrace: string
  readonly debugIds: Record<string, string>
  readonly occurredAtUnixNano: string
  readonly receivedAtMs: string
}

export interface ReleaseStacksKey {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Exceptions of this version, and those of scripts whose debug ids are in the index for this release. */
  readonly serviceVersion: string
  readonly releaseSlug: string
  readonly receivedSinceMs: number
  /** The last one of the page before. */
  readonly after: { readonly findingId: string; readonly serviceVersion: string } | undefined
  readonly limit: number
}

/**
 * The latest stack of each finding that a release may have thrown, a page at a time. Which stacks these are is found
 * without reading any text; then those of the page alone are read.
 */
export function selectReleaseStacks(
  client: ClickHouseClient,
  { after, ...key }: ReleaseStacksKey,
  signal: AbortSignal,
): Promise<ReleaseStackRow[]> {
  const own = 'workspace_id = {workspaceId: String} AND surface_id = {surfaceId: String}'
  const since = 'received_at >= fromUnixTimestamp64Milli({receivedSinceMs: Int64})'
  const isAfter = `AND finding_id >= {afterFindingId: String}
    AND (finding_id, service_version) > ({afterFindingId: String}, {afterVersion: String})`
  return selectRows<ReleaseStackRow>(client, {
    query: `
      SELECT finding_id AS findingId, service_version AS serviceVersion, stacktrace, debug_ids AS debugIds,
             occurred_at_unix_nano AS occurredAtUnixNano, toUnixTimestamp64Milli(received_at) AS receivedAtMs
      FROM exceptions
      WHERE ${own} AND ${since} AND (finding_id, service_version, received_at) IN (
        SELECT finding_id, service_version, max(received_at) FROM exceptions
        WHERE ${own} AND ${since} AND source != 'span_status'
          AND (service_version = {serviceVersion: String} OR arrayExists(id -> id IN (
            SELECT debug_id FROM source_maps WHERE ${own} AND release_slug = {releaseSlug: String}), mapValues(debug_ids)))
          ${after ? isAfter : ''}
        GROUP BY finding_id, service_version ORDER BY finding_id, service_version LIMIT {limit: UInt32})
      ORDER BY finding_id, service_version, occurred_at_unix_nano DESC
      LIMIT 1 BY finding_id, service_version`,
    params: { ...key, afterFindingId: after?.findingId, afterVersion: after?.serviceVersion },
    signal,
  })
}
