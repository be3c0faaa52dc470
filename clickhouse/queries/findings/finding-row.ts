/** A finding as the reads of `findings` and `finding_details` select it. 64-bit numbers are decimal text. */
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

/** Further columns of findings. Each text begins with a comma. */
interface MoreColumns {
  readonly ofFindings: string
  readonly ofDetails: string
}

/**
 * Returns a query of the findings that a condition on workspace and id selects, with the columns of FindingRow. It groups by
 * finding_id, because rows of a finding merge only in the background. Texts are cut, because a client chooses their length.
 *
 * An insert fills `findings` and `finding_details` one after the other. A finding without details has empty ones until then: a
 * page that left it out would be passed by the next page, and the finding would be missing from the list.
 */
export function findingsQuery(condition: string, more: MoreColumns = { ofFindings: '', ofDetails: '' }): string {
  return `
    SELECT * FROM (
      SELECT finding_id AS id, any(surface_id) AS surfaceId, leftUTF8(any(findings.service_name), 1024) AS serviceName,
             min(first_seen_unix_nano) AS firstSeenUnixNano, max(last_seen_unix_nano) AS lastSeenUnixNano,
             sum(occurrence_count) AS occurrenceCount${more.ofFindings}
      FROM findings WHERE ${condition} GROUP BY finding_id) AS counted
    LEFT JOIN (
      SELECT finding_id AS id, leftUTF8(argMaxMerge(finding_details.type), 1024) AS type,
             leftUTF8(argMaxMerge(finding_details.message), 8192) AS message${more.ofDetails}
      FROM finding_details WHERE ${condition} GROUP BY finding_id) AS described
    USING (id)`
}
