import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** A device of a session. 64-bit numbers are decimal text; absent values are empty texts. */
export interface DeviceRow {
  readonly deviceId: string
  readonly visitorId: string
  readonly fpHash: string
  readonly firstMs: string
  readonly lastMs: string
  readonly heartbeatCount: string
  /** Number of devices of the session. */
  readonly total: string
  readonly sessionFirstMs: string
}

/**
 * Returns the devices of a session, the last active first, each with its last visitor and fingerprint. Heartbeats
 * without a device id count as one device for each visitor and fingerprint.
 */
export function selectSessionDevices(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<DeviceRow[]> {
  return selectRows<DeviceRow>(client, {
    query: `
      SELECT device_id AS deviceId,
             argMaxIf(visitor_id, received_at, visitor_id != '') AS visitorId,
             leftUTF8(argMaxIf(fp_hash, received_at, fp_hash != ''), 1024) AS fpHash,
             toUnixTimestamp64Milli(min(received_at)) AS firstMs, toUnixTimestamp64Milli(max(received_at)) AS lastMs,
             count() AS heartbeatCount, count() OVER () AS total, min(firstMs) OVER () AS sessionFirstMs
      FROM session_heartbeats WHERE ${OF_SESSION}
      GROUP BY device_id, if(device_id = '', visitor_id, ''), if(device_id = '', fp_hash, '')
      ORDER BY lastMs DESC, deviceId, visitorId, fpHash LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}
