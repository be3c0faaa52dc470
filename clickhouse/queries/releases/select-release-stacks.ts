import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** The latest exception of a variant. 64-bit numbers are decimal text. */
export interface ReleaseStackRow {
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly serviceName: string
  readonly serviceVersion: string
  readonly type: string
  readonly message: string
  readonly fingerprint: string
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
  /** The last variant of the previous page, or empty. */
  readonly after: string
  readonly limit: number
}

/**
 * Returns a page of the latest stacks of the variants that a release may have thrown. The query first selects the
 * stacks without reading any text, then reads only the stacks of the page.
 */
export function selectReleaseStacks(
  client: ClickHouseClient,
  key: ReleaseStacksKey,
  signal: AbortSignal,
): Promise<ReleaseStackRow[]> {
  const own = 'workspace_id = {workspaceId: String} AND surface_id = {surfaceId: String}'
  const since = 'received_at >= fromUnixTimestamp64Milli({receivedSinceMs: Int64})'
  return selectRows<ReleaseStackRow>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, service_name AS serviceName, service_version AS serviceVersion, type, message,
             fingerprint, stacktrace, debug_ids AS debugIds,
             occurred_at_unix_nano AS occurredAtUnixNano, toUnixTimestamp64Milli(received_at) AS receivedAtMs
      FROM exceptions
      WHERE ${own} AND ${since} AND (variant_id, received_at) IN (
        SELECT variant_id, max(received_at) FROM exceptions
        WHERE ${own} AND ${since} AND source != 'span_status'
          AND (service_version = {serviceVersion: String} OR arrayExists(id -> id IN (
            SELECT debug_id FROM source_maps WHERE ${own} AND release_slug = {releaseSlug: String}), mapValues(debug_ids)))
          ${key.after === '' ? '' : 'AND variant_id > toFixedString(unhex({after: String}), 16)'}
        GROUP BY variant_id ORDER BY variant_id LIMIT {limit: UInt32})
      ORDER BY variant_id, occurred_at_unix_nano DESC
      LIMIT 1 BY variant_id`,
    params: { ...key },
    signal,
  })
}
