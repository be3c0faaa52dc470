import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type CountedFinding, countedQuery, detailsQuery, type FindingDetails } from './finding-row.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** Identifies a finding. */
export interface FindingKey {
  readonly workspaceId: string
  readonly findingId: string
}

/** A finding with the surfaces and services that have it, and its days. 64-bit numbers are decimal text. */
export type CountedFindingRow = CountedFinding & FindingPlaces

/** The details of a finding with the versions that have it, and how many traces and sessions do. */
type FindingDetailsRow = FindingDetails & FindingExtent

/** Further columns of `findings`. */
interface FindingPlaces {
  readonly surfaceIds: readonly string[]
  readonly serviceNames: readonly string[]
  /** The first day with a retained occurrence, `2026-11-21`. */
  readonly firstDay: string
  /** Days with occurrences in ascending order, and their counts. */
  readonly days: readonly [readonly string[], readonly string[]]
}

/** Further columns of `finding_details`. */
interface FindingExtent {
  readonly serviceVersions: readonly string[]
  readonly traceCount: string
  readonly sessionCount: string
}

const CONDITION = 'workspace_id = {workspaceId: String} AND finding_id = {findingId: String}'

const PLACES = `,
    groupUniqArray(100)(surface_id) AS surfaceIds,
    arrayMap(name -> leftUTF8(name, 1024), groupUniqArray(100)(findings.service_name)) AS serviceNames,
    min(day) AS firstDay, sumMap([day], [occurrence_count]) AS days`

const EXTENT = `,
    arraySort(arrayMap(version -> leftUTF8(version, 256),
      arrayFilter(version -> version != '', groupUniqArrayMerge(20)(service_versions)))) AS serviceVersions,
    ifNull(uniqCombinedMerge(14)(traces), 0) AS traceCount,
    ifNull(uniqCombinedMerge(14)(sessions), 0) AS sessionCount`

const NO_DETAILS: FindingDetailsRow = {
  ...{ type: '', message: '' },
  ...{ serviceVersions: [], traceCount: '0', sessionCount: '0' },
}

/** Returns what is counted of a finding, or undefined if it is unknown. */
export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<CountedFindingRow | undefined> {
  const [row] = await selectRows<CountedFindingRow>(client, {
    query: countedQuery(CONDITION, PLACES),
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row
}

/** Returns the details of a finding, which are empty until its first insert is complete. */
export async function selectFindingDetails(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingDetailsRow> {
  const [row] = await selectRows<FindingDetailsRow>(client, {
    query: detailsQuery(CONDITION, EXTENT),
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row ?? NO_DETAILS
}
