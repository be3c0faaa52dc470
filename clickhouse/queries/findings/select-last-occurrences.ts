import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingKey, ONE_FINDING_SETTINGS } from './select-finding.ts'

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

/**
 * Returns the occurrences that were received last, the latest first. Only the days of these occurrences are read, from
 * the end, because a day may have any number of occurrences.
 */
export function selectLastOccurrences(
  client: ClickHouseClient,
  key: FindingKey,
  { limit, messageLength }: { limit: number; messageLength: number },
  signal: AbortSignal,
): Promise<OccurrenceRow[]> {
  const ofFinding = 'workspace_id = {workspaceId: String} AND finding_id = {findingId: String}'
  return selectRows<OccurrenceRow>(client, {
    query: `
      WITH (SELECT min(day) FROM (
              SELECT day, sum(sum(occurrence_count)) OVER (ORDER BY day DESC) - sum(occurrence_count) AS later
              FROM findings WHERE ${ofFinding} GROUP BY day)
            WHERE later < {limit: UInt32}) AS first_day
      SELECT occurred_at_unix_nano AS occurredUnixNano, toUnixTimestamp64Milli(received_at) AS receivedMs,
             lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId, leftUTF8(session_id, 200) AS sessionId,
             leftUTF8(service_version, 256) AS serviceVersion, leftUTF8(message, {messageLength: UInt32}) AS message
      FROM exceptions
      WHERE ${ofFinding} AND received_at >= toDateTime64(first_day, 3, 'UTC')
      ORDER BY workspace_id DESC, finding_id DESC, received_at DESC LIMIT {limit: UInt32}`,
    params: { ...key, limit, messageLength },
    signal,
    // One thread reads from the end of each part and stops. Several threads would read ahead.
    settings: { ...ONE_FINDING_SETTINGS, optimize_read_in_order: 1 },
  })
}
