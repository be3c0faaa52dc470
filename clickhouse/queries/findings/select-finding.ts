import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { type FindingRow, selectFindingRows } from './finding-row.ts'

/** Identifies a finding. */
export interface FindingKey {
  readonly workspaceId: string
  readonly findingId: string
}

/** A finding with the surfaces, services and versions that have it. 64-bit numbers are decimal text. */
export type WholeFindingRow = FindingRow & FindingPlaces & FindingExtent

/** Further columns of `findings`. */
interface FindingPlaces {
  readonly surfaceIds: readonly string[]
  readonly serviceNames: readonly string[]
  /** The first day with a retained occurrence, `2026-11-21`. */
  readonly firstDay: string
}

/** Further columns of `finding_details`. */
interface FindingExtent {
  readonly serviceVersions: readonly string[]
  readonly traceCount: string
  readonly sessionCount: string
}

/**
 * Settings of reads of one finding. They read a few granules of each day, several of them at the same time, and preparing a
 * second thread for one costs more than it saves (1 ms of 7 in the read of a trace).
 */
export const ONE_FINDING_SETTINGS: ClickHouseSettings = { max_threads: 1 }

const CONDITION = 'workspace_id = {workspaceId: String} AND finding_id = {findingId: String}'

const MORE = {
  ofFindings: `,
    groupUniqArray(100)(surface_id) AS surfaceIds,
    arrayMap(name -> leftUTF8(name, 1024), groupUniqArray(100)(findings.service_name)) AS serviceNames,
    min(day) AS firstDay`,
  ofDetails: `,
    arraySort(arrayMap(version -> leftUTF8(version, 256),
      arrayFilter(version -> version != '', groupUniqArrayMerge(20)(service_versions)))) AS serviceVersions,
    ifNull(uniqCombinedMerge(14)(traces), 0) AS traceCount,
    ifNull(uniqCombinedMerge(14)(sessions), 0) AS sessionCount`,
}

const NO_EXTENT: FindingExtent = { serviceVersions: [], traceCount: '0', sessionCount: '0' }

/** Returns a finding, or undefined if it is unknown. */
export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<WholeFindingRow | undefined> {
  const search = { condition: CONDITION, params: { ...key }, settings: ONE_FINDING_SETTINGS, more: MORE }
  const rows = await selectFindingRows<FindingPlaces, FindingExtent>(client, search, NO_EXTENT, signal)
  return rows[0]
}
