import { type FindingMerges, partsOf, withMerged } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfTheirVariants, findingsOfVariants, MERGES_SETTINGS } from '../attributes/membership.ts'

/** A workspace and its merges, by which the occurrences of its findings are joined. */
interface MergedWorkspace {
  readonly workspaceId: string
  readonly merges: FindingMerges
}

/** An occurrence of a finding: that of a variant (hexadecimal digits) which was received at a time, Unix ms. */
export interface OccurrencePlace {
  readonly findingId: string
  readonly variantId: string
  readonly receivedMs: number
}

/** Returns the first retained occurrences of the findings whose first one was received since a time, the latest first. */
export function selectFirstPlaces(
  client: ClickHouseClient,
  { workspaceId, merges }: MergedWorkspace,
  { sinceMs, limit }: { readonly sinceMs: number; readonly limit: number },
  signal: AbortSignal,
): Promise<OccurrencePlace[]> {
  const own = 'SELECT variant_id FROM findings WHERE workspace_id = {workspaceId: String}'
  const query = `
    SELECT id AS findingId, lower(hex(argMin(variant_id, first))) AS variantId, toUnixTimestamp64Milli(min(first)) AS receivedMs
    FROM (
      SELECT variant_id, min(first_received_at) AS first, sum(occurrence_count) AS total FROM findings
      WHERE workspace_id = {workspaceId: String} GROUP BY variant_id) AS occurred
    INNER JOIN (${findingsOfVariants(own, merges)}) AS variants USING (variant_id)
    GROUP BY id HAVING receivedMs >= {sinceMs: Int64} AND sum(total) > 0
    ORDER BY receivedMs DESC, findingId LIMIT {limit: UInt32}`
  return placesOf(client, { query, params: { workspaceId, sinceMs, limit }, signal })
}

/** Returns the occurrences of findings that were received last. */
export async function selectLastPlaces(
  client: ClickHouseClient,
  { workspaceId, merges }: MergedWorkspace,
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<OccurrencePlace[]> {
  const found: OccurrencePlace[] = []
  for (const part of partsOf(merges, findingIds)) {
    const variants = findingsOfTheirVariants(part.merges)
    const query = `
      SELECT id AS findingId, lower(hex(argMax(variant_id, last))) AS variantId, toUnixTimestamp64Milli(max(last)) AS receivedMs
      FROM (
        SELECT variant_id, max(last_received_at) AS last, sum(occurrence_count) AS total FROM findings
        WHERE workspace_id = {workspaceId: String} AND variant_id IN (SELECT variant_id FROM (${variants}))
        GROUP BY variant_id) AS occurred
      INNER JOIN (${variants}) AS variants USING (variant_id)
      WHERE id IN {findingIds: Array(FixedString(30))}
      GROUP BY id HAVING sum(total) > 0`
    found.push(...(await placesOf(client, { query, params: { workspaceId, findingIds: part.findingIds }, signal })))
  }
  return found
}

/** The first occurrence of a finding in a version, after a time. */
interface ReturnedVersion extends OccurrencePlace {
  readonly version: string
}

/** Returns the first occurrences of findings in each version, of those that were received after a time of each. */
export async function selectReturns(
  client: ClickHouseClient,
  { workspaceId, merges }: MergedWorkspace,
  findings: readonly { readonly findingId: string; readonly afterMs: number }[],
  signal: AbortSignal,
): Promise<ReturnedVersion[]> {
  const found: ReturnedVersion[] = []
  const afterMs = new Map(findings.map(finding => [finding.findingId, finding.afterMs]))
  for (const part of partsOf(merges, [...afterMs.keys()])) {
    const variants = findingsOfTheirVariants(part.merges)
    const ids = part.findingIds.filter(id => afterMs.has(id))
    const times = ids.map(id => afterMs.get(id) ?? 0)
    const query = `
      SELECT id AS findingId, version, lower(hex(argMin(variant_id, at))) AS variantId,
             toUnixTimestamp64Milli(min(at)) AS receivedMs
      FROM (
        SELECT variant_id, leftUTF8(service_version, 256) AS version, received_at AS at FROM exceptions
        WHERE workspace_id = {workspaceId: String} AND variant_id IN (SELECT variant_id FROM (${variants}))
          AND received_at > fromUnixTimestamp64Milli({earliestMs: Int64}, 'UTC')) AS occurred
      INNER JOIN (${variants}) AS variants USING (variant_id)
      WHERE toUnixTimestamp64Milli(at) > transform(toString(id), {ids: Array(String)}, {times: Array(Int64)}, ${FAR_MS})
      GROUP BY id, version`
    const params = { workspaceId, findingIds: part.findingIds, ids, times, earliestMs: Math.min(...times) }
    found.push(...((await placesOf(client, { query, params, signal })) as ReturnedVersion[]))
  }
  return found
}

/** Later than any time. */
const FAR_MS = 'toInt64(9000000000000)'

/** Returns how many identified people findings had concerned before a time of each, by the id of the finding. */
export async function selectPeopleBefore(
  client: ClickHouseClient,
  { workspaceId, merges }: MergedWorkspace,
  untilMs: ReadonlyMap<string, number>,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const part of partsOf(merges, [...untilMs.keys()])) {
    const variants = findingsOfTheirVariants(part.merges)
    const ids = part.findingIds.filter(id => untilMs.has(id))
    const times = ids.map(id => untilMs.get(id) ?? 0)
    const ofVariants = `workspace_id = {workspaceId: String} AND variant_id IN (SELECT variant_id FROM (${variants})) AND session_id != ''
      AND received_at < fromUnixTimestamp64Milli({latestMs: Int64}, 'UTC')`
    const rows = await selectRows<{ findingId: string; people: string }>(client, {
      query: `
        SELECT findingId, uniqExact(person) AS people
        FROM (
          SELECT DISTINCT id AS findingId, session_id
          FROM (
            SELECT variant_id, session_id, min(received_at) AS first FROM exceptions WHERE ${ofVariants}
            GROUP BY variant_id, session_id) AS occurred
          INNER JOIN (${variants}) AS variants USING (variant_id)
          WHERE toUnixTimestamp64Milli(first) < transform(toString(id), {ids: Array(String)}, {times: Array(Int64)}, toInt64(0))) AS sessions
        INNER JOIN (
          SELECT session_id, argMax(identifier, tuple(received_at, identifier, source_type, name, email)) AS person
          FROM session_identities
          WHERE workspace_id = {workspaceId: String} AND session_id IN (SELECT session_id FROM exceptions WHERE ${ofVariants})
          GROUP BY session_id HAVING person != '') AS identified USING (session_id)
        GROUP BY findingId`,
      params: { workspaceId, findingIds: part.findingIds, ids, times, latestMs: Math.max(...times) },
      signal,
      settings: MERGES_SETTINGS,
    })
    for (const { findingId, people } of rows) found.set(findingId, Number(people))
  }
  return found
}

/** A number of occurrences since a day, in days since 1970. */
interface CountSince {
  readonly findingId: string
  readonly day: number
  readonly count: number
}

/** Returns when findings had occurred a number of times since a day: the beginning of these five minutes, Unix ms. */
export async function selectCountReached(
  client: ClickHouseClient,
  { workspaceId, merges }: MergedWorkspace,
  { findingId, day, count }: CountSince,
  signal: AbortSignal,
): Promise<number | undefined> {
  const [row] = await selectRows<{ reachedMs: string }>(client, {
    query: `
      SELECT toUnixTimestamp(received_bucket) * 1000 AS reachedMs
      FROM (
        SELECT received_bucket, sum(total) OVER (ORDER BY received_bucket) AS reached
        FROM (
          SELECT received_bucket, sum(occurrence_count) AS total FROM finding_buckets
          WHERE workspace_id = {workspaceId: String} AND day >= toDate({day: UInt16}) AND variant_id IN (
            SELECT variant_id FROM (${findingsOfTheirVariants(merges)}) WHERE id = {findingId: String})
          GROUP BY received_bucket) AS buckets) AS counted
      WHERE reached >= {count: UInt64} ORDER BY received_bucket LIMIT 1`,
    params: { workspaceId, findingId, findingIds: withMerged(merges, [findingId]), day, count },
    signal,
    settings: MERGES_SETTINGS,
  })
  return row && Number(row.reachedMs)
}

/** What is read of an occurrence. Absent texts are empty. */
export interface PastOccurrence {
  readonly variantId: string
  readonly receivedMs: number
  readonly surfaceId: string
  readonly service: string
  readonly version: string
  readonly environment: string
  readonly type: string
  readonly message: string
}

/** Occurrences that one query reads. A granule of 1,024 rows is read for each. */
const OCCURRENCES_AT_ONCE = 500

/** Returns the occurrences at places, in no order. */
export async function selectOccurrencesAt(
  client: ClickHouseClient,
  workspaceId: string,
  places: readonly OccurrencePlace[],
  signal: AbortSignal,
): Promise<PastOccurrence[]> {
  const found: PastOccurrence[] = []
  for (let at = 0; at < places.length; at += OCCURRENCES_AT_ONCE) {
    const some = places.slice(at, at + OCCURRENCES_AT_ONCE)
    const rows = await selectRows<Omit<PastOccurrence, 'receivedMs'> & { receivedMs: string }>(client, {
      query: `
        SELECT lower(hex(variant_id)) AS variantId, toUnixTimestamp64Milli(received_at) AS receivedMs, surface_id AS surfaceId,
               leftUTF8(service_name, 1024) AS service, leftUTF8(service_version, 256) AS version, environment,
               leftUTF8(exceptions.type, 1000) AS type, leftUTF8(exceptions.message, 1000) AS message
        FROM exceptions
        WHERE workspace_id = {workspaceId: String} AND (variant_id, received_at) IN (
          SELECT toFixedString(unhex(place.1), 16), fromUnixTimestamp64Milli(place.2, 'UTC')
          FROM (SELECT arrayJoin(arrayZip({variantIds: Array(String)}, {times: Array(Int64)})) AS place))
        ORDER BY variant_id, received_at LIMIT 1 BY variant_id, received_at`,
      params: {
        workspaceId,
        variantIds: some.map(({ variantId }) => variantId),
        times: some.map(({ receivedMs }) => receivedMs),
      },
      signal,
    })
    found.push(...rows.map(row => ({ ...row, receivedMs: Number(row.receivedMs) })))
  }
  return found
}

async function placesOf(
  client: ClickHouseClient,
  select: Pick<Parameters<typeof selectRows>[1], 'query' | 'params' | 'signal'>,
): Promise<OccurrencePlace[]> {
  const rows = await selectRows<Omit<OccurrencePlace, 'receivedMs'> & { receivedMs: string }>(client, {
    ...select,
    settings: MERGES_SETTINGS,
  })
  return rows.map(row => ({ ...row, receivedMs: Number(row.receivedMs) }))
}
