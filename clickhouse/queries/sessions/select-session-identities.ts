import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** An identity of a session. 64-bit numbers are decimal text; absent values are empty texts. */
export interface IdentityRow {
  readonly identifier: string
  readonly sourceType: string
  readonly sourceName: string
  readonly deviceId: string
  readonly visitorId: string
  readonly fpHash: string
  readonly avatar: string
  readonly email: string
  readonly name: string
  readonly country: string
  /** A JSON object as text. */
  readonly traits: string
  readonly receivedAtMs: string
  /** Number of identities of the session. */
  readonly total: string
  readonly firstMs: string
}

/** Returns the identities of a session, the last received first. The order within a millisecond is stable. */
export function selectSessionIdentities(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<IdentityRow[]> {
  return selectRows<IdentityRow>(client, {
    query: `
      SELECT identifier, source_type AS sourceType, source_name AS sourceName, device_id AS deviceId,
             visitor_id AS visitorId, fp_hash AS fpHash, avatar, email, name, country, traits,
             toUnixTimestamp64Milli(received_at) AS receivedAtMs, count() OVER () AS total,
             toUnixTimestamp64Milli(min(received_at) OVER ()) AS firstMs
      FROM session_identities WHERE ${OF_SESSION}
      ORDER BY received_at DESC, identifier DESC, source_type DESC, cityHash64(traits) DESC LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}
