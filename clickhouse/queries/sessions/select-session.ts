import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfVariants, isCounting, MERGES_SETTINGS, SEEN_UNIX_NANO } from '../attributes/membership.ts'
import { EXCEPTIONS_OF_SESSION, OF_SESSION, type SessionKey } from './session-key.ts'

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
      WITH (SELECT count() FROM session_identities WHERE ${OF_SESSION}) AS total
      SELECT identifier, source_type AS sourceType, source_name AS sourceName, device_id AS deviceId,
             visitor_id AS visitorId, fp_hash AS fpHash, avatar, email, name, country, traits,
             toUnixTimestamp64Milli(received_at) AS receivedAtMs, total
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
             count() AS heartbeatCount, count() OVER () AS total
      FROM session_heartbeats WHERE ${OF_SESSION}
      GROUP BY device_id, if(device_id = '', visitor_id, ''), if(device_id = '', fp_hash, '')
      ORDER BY lastMs DESC, deviceId, visitorId, fpHash LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}

/** A trace with spans of a session. 64-bit numbers are decimal text. */
export interface SessionTraceRow {
  readonly traceId: string
  readonly startUnixNano: string
  readonly endUnixNano: string
  readonly spanCount: string
  readonly errorCount: string
  /** Number of traces of the session. */
  readonly total: string
}

/** Returns the traces with spans of a session, the last started first. */
export function selectSessionTraces(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<SessionTraceRow[]> {
  return selectRows<SessionTraceRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS traceId, min(first_start_unix_nano) AS startUnixNano,
             max(last_end_unix_nano) AS endUnixNano, sum(span_count) AS spanCount, sum(error_count) AS errorCount,
             count() OVER () AS total
      FROM session_traces WHERE ${OF_SESSION}
      GROUP BY trace_id ORDER BY startUnixNano DESC, traceId LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}

/** A finding that occurred in a session. 64-bit numbers are decimal text. */
export interface SessionFindingRow {
  readonly id: string
  readonly occurrenceCount: string
  readonly lastSeenUnixNano: string
  /** Number of findings of the session. */
  readonly total: string
}

/** Returns the findings that occurred in a session, the last seen first. */
export function selectSessionFindings(
  client: ClickHouseClient,
  key: SessionKey,
  merges: FindingMerges,
  limit: number,
  signal: AbortSignal,
): Promise<SessionFindingRow[]> {
  return selectRows<SessionFindingRow>(client, {
    query: `
      SELECT id, sum(ofVariant) AS occurrenceCount, max(lastSeen) AS lastSeenUnixNano, count() OVER () AS total
      FROM (
        SELECT variant_id, count() AS ofVariant, max(${SEEN_UNIX_NANO}) AS lastSeen
        FROM exceptions WHERE ${EXCEPTIONS_OF_SESSION} AND ${isCounting(EXCEPTIONS_OF_SESSION)} GROUP BY variant_id) AS occurred
      INNER JOIN (${findingsOfVariants(`SELECT variant_id FROM exceptions WHERE ${EXCEPTIONS_OF_SESSION}`, merges)}) AS variants
        USING (variant_id)
      GROUP BY id ORDER BY lastSeenUnixNano DESC, id LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
    settings: MERGES_SETTINGS,
  })
}

/** Totals of the replay chunks of a session. 64-bit numbers are decimal text. */
export interface SessionReplayRow {
  readonly chunkCount: string
  readonly windowCount: string
  readonly eventCount: string
  readonly storedBytes: string
  readonly decompressedBytes: string
  readonly firstEventMs: string
  readonly lastEventMs: string
}

/** Returns the totals of the replay chunks of a session, or undefined if it has none. */
export async function selectSessionReplay(
  client: ClickHouseClient,
  key: SessionKey,
  signal: AbortSignal,
): Promise<SessionReplayRow | undefined> {
  const rows = await selectRows<SessionReplayRow>(client, {
    query: `
      SELECT count() AS chunkCount, uniqExact(surface_id, window_id) AS windowCount, sum(event_count) AS eventCount,
             sum(stored_bytes) AS storedBytes, sum(decompressed_bytes) AS decompressedBytes,
             min(first_event_ms) AS firstEventMs, max(last_event_ms) AS lastEventMs
      FROM replay_chunks WHERE ${OF_SESSION} HAVING chunkCount > 0`,
    params: { ...key },
    signal,
  })
  return rows[0]
}
