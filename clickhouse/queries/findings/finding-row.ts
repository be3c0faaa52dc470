/** A finding as the reads of `findings` and `finding_details` select it. 64-bit numbers are decimal text. */
export interface FindingRow extends CountedFinding, FindingDetails {}

/** Columns of `findings`. */
export interface CountedFinding {
  readonly id: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly firstSeenUnixNano: string
  readonly lastSeenUnixNano: string
  readonly occurrenceCount: string
}

/** Columns of `finding_details`. */
export interface FindingDetails {
  readonly type: string
  readonly message: string
}

/**
 * Returns the query of what is counted of the findings that a condition selects, grouped by finding_id, because rows of a
 * finding merge only in the background. Texts are cut, because a client chooses their length. `more` are further columns, each
 * after a comma.
 */
export function countedQuery(condition: string, more = ''): string {
  return `
    SELECT finding_id AS id, any(surface_id) AS surfaceId, leftUTF8(any(findings.service_name), 1024) AS serviceName,
           min(first_seen_unix_nano) AS firstSeenUnixNano, max(last_seen_unix_nano) AS lastSeenUnixNano,
           sum(occurrence_count) AS occurrenceCount${more}
    FROM findings WHERE ${condition} GROUP BY finding_id`
}

/** Returns the query of the details of the findings that a condition selects, as `countedQuery` does. */
export function detailsQuery(condition: string, more = ''): string {
  return `
    SELECT finding_id AS id, leftUTF8(argMaxMerge(finding_details.type), 1024) AS type,
           leftUTF8(argMaxMerge(finding_details.message), 8192) AS message${more}
    FROM finding_details WHERE ${condition} GROUP BY finding_id`
}
