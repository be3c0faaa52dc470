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
 * Columns of FindingRow. The query must group by finding_id, because rows of a finding merge only in the background. Texts
 * are cut, because a client chooses their length.
 */
export const FINDING_ROW = `
  finding_id AS id,
  any(surface_id) AS surfaceId, leftUTF8(any(findings.service_name), 1024) AS serviceName,
  leftUTF8(argMaxMerge(findings.type), 1024) AS type, leftUTF8(argMaxMerge(findings.message), 8192) AS message,
  min(first_seen_unix_nano) AS firstSeenUnixNano, max(last_seen_unix_nano) AS lastSeenUnixNano,
  sum(occurrence_count) AS occurrenceCount`
