/** A finding as the reads of `findings` select it. 64-bit numbers are decimal text. */
export interface FindingRow {
  readonly id: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly type: string
  readonly message: string
  readonly firstSeenUnixNano: string
  readonly lastSeenUnixNano: string
  readonly occurrenceCount: string
}

/**
 * Columns of FindingRow. The query must group by finding_id, because rows of a finding merge only in the background.
 */
export const FINDING_ROW = `
  finding_id AS id,
  any(surface_id) AS surfaceId, any(service_name) AS serviceName,
  argMaxMerge(type) AS type, argMaxMerge(message) AS message,
  min(first_seen_unix_nano) AS firstSeenUnixNano, max(last_seen_unix_nano) AS lastSeenUnixNano,
  sum(occurrence_count) AS occurrenceCount`
