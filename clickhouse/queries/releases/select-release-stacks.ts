import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** The latest stack of a finding in one version of its service. */
export interface ReleaseStackRow {
  readonly findingId: string
  readonly serviceVersion: string
  readonly stacktrace: string
  readonly debugIds: Record<string, string>
  readonly occurredAtUnixNano: string
  readonly receivedAtMs: string
}

/** Selects a page of the stacks of a release. */
export interface ReleaseStacksKey {
  readonly workspaceId: string
  readonly surfaceId: string
  /**
   * Selects exceptions of this version. Exceptions of scripts whose debug ids belong to the release are selected too.
   */
  readonly serviceVersion: string
  readonly releaseSlug: string
  readonly receivedSinceMs: number
  /** The last row of the previous page. */
  readonly after: { readonly findingId: string; readonly serviceVersion: string } | undefined
  readonly limit: number
}

/**
 * Returns a page of the latest stacks of the findings that a release may have thrown. The query first selects the
 * stacks without reading any text, then reads only the stacks of the page.
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
