import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'
import type { FindingKey } from './select-finding.ts'

/** An occurrence of a finding. Absent texts are empty, and absent ids are zeros. */
export interface OccurrenceRow {
  readonly occurredUnixNano: string
  readonly receivedMs: string
  readonly traceId: string
  readonly spanId: string
  readonly sessionId: string
  readonly serviceVersion: string
  /** The first characters of the message. */
  readonly message: string
}

/** Chooses the occurrences to read. */
interface LastOccurrences {
  /** A day since which there are as many, or that of the first one, `2026-11-21`. */
  readonly since: string
  readonly limit: number
  readonly messageLength: number
}

/** Returns the occurrences that were received last, the latest first. They are read from the end of each day. */
export function selectLastOccurrences(
  client: ClickHouseClient,
  key: FindingKey,
  { since, limit, messageLength }: LastOccurrences,
  signal: AbortSignal,
): Promise<OccurrenceRow[]> {
  return selectRows<OccurrenceRow>(client, {
    query: `
      SELECT occurred_at_unix_nano AS occurredUnixNano, toUnixTimestamp64Milli(received_at) AS receivedMs,
             lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId, leftUTF8(session_id, 200) AS sessionId,
             leftUTF8(service_version, 256) AS serviceVersion, leftUTF8(message, {messageLength: UInt32}) AS message
      FROM exceptions
      WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        AND received_at >= toDateTime64({since: Date}, 3, 'UTC')
      ORDER BY workspace_id DESC, finding_id DESC, received_at DESC LIMIT {limit: UInt32}`,
    params: { ...key, since, limit, messageLength },
    signal,
    // One thread reads from the end of each part and stops. Several threads would read ahead.
    settings: { ...ONE_FINDING_SETTINGS, optimize_read_in_order: 1 },
  })
}
