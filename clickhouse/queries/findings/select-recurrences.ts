import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { earliestDay, FINDING_SET_SETTINGS, type FindingSince, findingSet, findingsSince } from './finding-set.ts'

/** The occurrences of a finding since a day. 64-bit numbers are decimal text. */
interface Recurrence {
  readonly id: string
  /** When the last of them was received, Unix ms. */
  readonly lastReceivedMs: string
  readonly occurrenceCount: string
}

/**
 * Returns the occurrences of these findings of a workspace, each since a day. Those that have none since are not included. Reads
 * a row for each finding and day.
 */
export function selectRecurrences(
  client: ClickHouseClient,
  workspaceId: string,
  findings: readonly FindingSince[],
  signal: AbortSignal,
): Promise<Recurrence[]> {
  if (findings.length === 0) return Promise.resolve([])
  return selectRows<Recurrence>(client, {
    query: `
      SELECT finding_id AS id, toUnixTimestamp64Milli(max(lastReceivedAt)) AS lastReceivedMs, sum(total) AS occurrenceCount
      FROM (
        SELECT finding_id, day, max(last_received_at) AS lastReceivedAt, sum(occurrence_count) AS total
        FROM findings
        WHERE workspace_id = {workspaceId: String} AND day >= toDate({earliest: UInt16})
          AND finding_id IN (${findingSet(findings.map(({ findingId }) => findingId))})
        GROUP BY finding_id, day) AS seen
      INNER JOIN (${findingsSince(findings)}) AS wanted USING (finding_id)
      WHERE day >= since
      GROUP BY finding_id`,
    params: { workspaceId, earliest: earliestDay(findings) },
    signal,
    settings: FINDING_SET_SETTINGS,
  })
}
