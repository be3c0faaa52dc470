import { type FindingMerges, mergesInto } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingKey, findingParams, findingsOfVariants, ofFinding } from '../attributes/membership.ts'
import { earliestDay, FINDING_SET_SETTINGS, type FindingSince, findingsSince } from './finding-set.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** Findings whose versions one query reads. A version has at most 256 characters, so a result has some megabytes. */
const FINDINGS_AT_ONCE = 500

/** Condition on rows with a version, of days that a set of findings asks for. */
const OCCURRED = `workspace_id = {workspaceId: String} AND day >= toDate({earliest: UInt16})
  AND service_version != ''`

/** Returns the versions that a finding has occurred in, the latest days first. Occurrences without a version are left out. */
export async function selectVersions(
  client: ClickHouseClient,
  key: FindingKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ version: string }>(client, {
    query: `
      SELECT leftUTF8(service_version, 256) AS version
      FROM findings WHERE ${ofFinding(key)} AND service_version != ''
      GROUP BY version HAVING sum(occurrence_count) > 0 ORDER BY max(day) DESC, version LIMIT {limit: UInt32}`,
    params: { ...findingParams(key), limit },
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
  { workspaceId, merges }: { readonly workspaceId: string; readonly merges: FindingMerges },
  findings: readonly FindingSince[],
  limit: number,
  signal: AbortSignal,
): Promise<Map<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>()
  for (let at = 0; at < findings.length; at += FINDINGS_AT_ONCE) {
    const some = findings.slice(at, at + FINDINGS_AT_ONCE)
    const relevant = mergesInto(
      merges,
      some.map(({ findingId }) => findingId),
    )
    const variants = findingsOfVariants(`SELECT variant_id FROM findings WHERE ${OCCURRED}`, relevant)
    const rows = await selectRows<{ id: string; versions: string[] }>(client, {
      query: `
        SELECT finding_id AS id, arraySort(groupUniqArray(${Math.trunc(limit)})(version)) AS versions
        FROM (
          SELECT id AS finding_id, day, version
          FROM (
            SELECT variant_id, day, leftUTF8(any(service_version), 256) AS version
            FROM findings WHERE ${OCCURRED} GROUP BY variant_id, day HAVING sum(occurrence_count) > 0) AS occurred
          INNER JOIN (${variants}) AS variants USING (variant_id)) AS seen
        INNER JOIN (${findingsSince(some)}) AS wanted USING (finding_id)
        WHERE day >= since
        GROUP BY finding_id`,
      params: { workspaceId, earliest: earliestDay(some) },
      signal,
      settings: FINDING_SET_SETTINGS,
    })
    for (const { id, versions } of rows) found.set(id, versions)
  }
  return found
}
