import { type FindingMerges, mergesInto } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfVariants } from '../attributes/membership.ts'
import { earliestDay, FINDING_SET_SETTINGS, type FindingSince, findingsSince } from './finding-set.ts'

/** The occurrences of a finding since a day. 64-bit numbers are decimal text. */
interface Recurrence {
  readonly id: string
  /** When the last of them was received, Unix ms. */
  readonly lastReceivedMs: string
  readonly occurrenceCount: string
}

/** Condition on rows of the days that a set of findings asks for. */
const SINCE = 'workspace_id = {workspaceId: String} AND day >= toDate({earliest: UInt16})'

/**
 * Returns the occurrences of these findings of a workspace, each since a day. Those that have none since are not included. Reads
 * a row for each variant and day.
 */
export function selectRecurrences(
  client: ClickHouseClient,
  { workspaceId, merges }: { readonly workspaceId: string; readonly merges: FindingMerges },
  findings: readonly FindingSince[],
  signal: AbortSignal,
): Promise<Recurrence[]> {
  if (findings.length === 0) return Promise.resolve([])
  const relevant = mergesInto(
    merges,
    findings.map(({ findingId }) => findingId),
  )
  const variants = findingsOfVariants(`SELECT variant_id FROM findings WHERE ${SINCE}`, relevant)
  return selectRows<Recurrence>(client, {
    query: `
      SELECT finding_id AS id, toUnixTimestamp64Milli(max(lastReceivedAt)) AS lastReceivedMs, sum(total) AS occurrenceCount
      FROM (
        SELECT id AS finding_id, day, lastReceivedAt, total
        FROM (
          SELECT variant_id, day, max(last_received_at) AS lastReceivedAt, sum(occurrence_count) AS total
          FROM findings WHERE ${SINCE} GROUP BY variant_id, day) AS occurred
        INNER JOIN (${variants}) AS variants USING (variant_id)) AS seen
      INNER JOIN (${findingsSince(findings)}) AS wanted USING (finding_id)
      WHERE day >= since AND total > 0
      GROUP BY finding_id`,
    params: { workspaceId, earliest: earliestDay(findings) },
    signal,
    settings: FINDING_SET_SETTINGS,
  })
}
