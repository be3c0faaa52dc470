import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import { type FindingKey, findingsOfKey, ofFinding } from '../attributes/membership.ts'

/** A finding as the reads of `findings` select it. 64-bit numbers are decimal text. */
export interface FindingRow extends CountedFinding, FindingDetails {}

/** What is counted of a finding. */
export interface CountedFinding {
  readonly id: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly firstSeenUnixNano: string
  readonly lastSeenUnixNano: string
  readonly occurrenceCount: string
}

/** The texts of the occurrence of a finding that was stored last, cut to 1,000 characters each, and the frame of its variant. */
export interface FindingDetails {
  readonly type: string
  readonly message: string
  /** As `topFrameOf` returns it. */
  readonly topFrame: string
}

/** Where the texts of a finding are: the day and the variant of the occurrence that was stored last. */
export interface LatestPlace {
  /** Days since 1970. */
  readonly latestDay: number
  /** 16 bytes as hexadecimal digits. */
  readonly latestVariant: string
}

/** What is counted of a finding, by its variants as `variantsQuery` selects them. Texts are cut: a client chooses their length. */
const COUNTED = `any(surface) AS surfaceId, leftUTF8(any(service), 1024) AS serviceName,
           min(firstSeen) AS firstSeenUnixNano, max(lastSeen) AS lastSeenUnixNano, sum(total) AS occurrenceCount,
           argMax(tuple(last.2, variant_id), tuple(lastStored, last.1, variant_id)) AS lastOf,
           toUInt16(lastOf.1) AS latestDay, lower(hex(lastOf.2)) AS latestVariant`

/** Returns the query of what is counted of variants that meet a condition. Rows of a day merge only in the background. */
function variantsQuery(condition: string, more = ''): string {
  return `
      SELECT variant_id, any(surface_id) AS surface, any(service_name) AS service, min(first_seen_unix_nano) AS firstSeen,
             max(last_seen_unix_nano) AS lastSeen, sum(occurrence_count) AS total,
             max(latest.stored_at) AS lastStored, argMax(tuple(latest.received_at, day), latest.stored_at) AS last${more}
      FROM findings WHERE ${condition} GROUP BY variant_id`
}

/** Returns the query of what is counted of findings, of which some are merged into others. */
export function countedQuery(key: FindingKey, merges: FindingMerges): string {
  return `
    SELECT id, ${COUNTED}
    FROM (${variantsQuery(ofFinding(key))}) AS counted
    INNER JOIN (${findingsOfKey(key, merges)}) AS variants USING (variant_id)
    WHERE id IN {findingIds: Array(FixedString(30))}
    GROUP BY id HAVING occurrenceCount > 0`
}

/** Returns the same of one finding. `ofVariant` are further columns of a variant, and `more` of the finding, each after a comma. */
export function countedOfOneQuery(key: FindingKey, ofVariant: string, more: string): string {
  return `SELECT {findingIds: Array(String)}[1] AS id, ${COUNTED}${more}
    FROM (${variantsQuery(ofFinding(key), ofVariant)}) HAVING occurrenceCount > 0`
}
