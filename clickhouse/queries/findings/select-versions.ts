import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { earliestDay, FINDING_SET_SETTINGS, type FindingSince, findingSet, findingsSince } from './finding-set.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'
import type { FindingKey } from './select-finding.ts'

/** Findings whose versions one query reads. A version has at most 256 characters, so a result has some megabytes. */
const FINDINGS_AT_ONCE = 500

/** Returns the versions that a finding has occurred in, the latest days first. Occurrences without a version are left out. */
export async function selectVersions(
  client: ClickHouseClient,
  { workspaceId, findingId }: FindingKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ version: string }>(client, {
    query: `
      SELECT version FROM (
        SELECT leftUTF8(arrayJoin(finalizeAggregation(service_versions)), 256) AS version, day
        FROM finding_details WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String})
      WHERE version != '' GROUP BY version ORDER BY max(day) DESC, version LIMIT {limit: UInt32}`,
    params: { workspaceId, findingId, limit },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return rows.map(({ version }) => version)
}

/**
 * Returns up to `limit` versions that each of these findings has occurred in since a day, by the id of the finding. Occurrences
 * without a version are left out.
 */
export async function selectVersionsSince(
  client: ClickHouseClient,
  workspaceId: string,
  findings: readonly FindingSince[],
  limit: number,
  signal: AbortSignal,
): Promise<Map<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>()
  for (let at = 0; at < findings.length; at += FINDINGS_AT_ONCE) {
    const some = findings.slice(at, at + FINDINGS_AT_ONCE)
    const rows = await selectRows<{ id: string; versions: string[] }>(client, {
      query: `
        SELECT finding_id AS id, arraySort(groupUniqArray(${Math.trunc(limit)})(version)) AS versions
        FROM (
          SELECT finding_id, day, leftUTF8(arrayJoin(finalizeAggregation(service_versions)), 256) AS version
          FROM finding_details
          WHERE workspace_id = {workspaceId: String} AND day >= toDate({earliest: UInt16})
            AND finding_id IN (${findingSet(some.map(({ findingId }) => findingId))})) AS seen
        INNER JOIN (${findingsSince(some)}) AS wanted USING (finding_id)
        WHERE day >= since AND version != ''
        GROUP BY finding_id`,
      params: { workspaceId, earliest: earliestDay(some) },
      signal,
      settings: FINDING_SET_SETTINGS,
    })
    for (const { id, versions } of rows) found.set(id, versions)
  }
  return found
}
