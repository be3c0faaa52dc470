import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** 64-bit numbers as decimal text, empty texts for what was not said. */
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
  /** The text of a JSON object. */
  readonly traits: string
  readonly receivedAtMs: string
  /** Of the session. */
  readonly total: string
  readonly firstMs: string
}

/** The identities of a session, the one that was received last first; within one millisecond in an order that stays. */
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
