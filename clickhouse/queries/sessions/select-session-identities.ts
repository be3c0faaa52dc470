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

const ORDER = 'received_at DESC, identifier DESC, source_type DESC, cityHash64(traits) DESC'

/**
 * Returns the identities of a session, the last received first, until their texts have `limitBytes`. The order within a
 * millisecond is stable. Only the end of the session is read, because it may have any number of identities of 256 KiB.
 */
export function selectSessionIdentities(
  client: ClickHouseClient,
  key: SessionKey,
  { limit, limitBytes }: { limit: number; limitBytes: number },
  signal: AbortSignal,
): Promise<IdentityRow[]> {
  return selectRows<IdentityRow>(client, {
    query: `
      WITH (SELECT (count(), toUnixTimestamp64Milli(min(received_at))) FROM session_identities WHERE ${OF_SESSION}) AS whole
      SELECT identifier, source_type AS sourceType, source_name AS sourceName, device_id AS deviceId,
             visitor_id AS visitorId, fp_hash AS fpHash, avatar, email, name, country, traits,
             toUnixTimestamp64Milli(received_at) AS receivedAtMs, whole.1 AS total, whole.2 AS firstMs
      FROM (
        SELECT *, length(traits) + length(identifier) + length(source_name) + length(fp_hash) + length(avatar)
                  + length(name) AS bytes,
               sum(bytes) OVER (ORDER BY ${ORDER} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
        FROM (SELECT * FROM session_identities WHERE ${OF_SESSION} ORDER BY ${ORDER} LIMIT {limit: UInt32}))
      WHERE bytes_before < {limitBytes: UInt32}
      ORDER BY ${ORDER}`,
    params: { ...key, limit, limitBytes },
    signal,
  })
}
