import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingRow, findingsQuery } from './finding-row.ts'

/** Identifies a finding. */
export interface FindingKey {
  readonly workspaceId: string
  readonly findingId: string
}

/** A finding with the surfaces, services and versions that have it. 64-bit numbers are decimal text. */
export interface WholeFindingRow extends FindingRow {
  readonly surfaceIds: readonly string[]
  readonly serviceNames: readonly string[]
  readonly serviceVersions: readonly string[]
  readonly traceCount: string
  readonly sessionCount: string
  /** The first day with a retained occurrence, `2026-11-21`. */
  readonly firstDay: string
}

/**
 * Settings of reads of one finding. They read a few granules of each day, several of them at the same time, and preparing a
 * second thread for one costs more than it saves (1 ms of 7 in the read of a trace).
 */
export const ONE_FINDING_SETTINGS: ClickHouseSettings = { max_threads: 1 }

const QUERY = findingsQuery('workspace_id = {workspaceId: String} AND finding_id = {findingId: String}', {
  ofFindings: `,
    groupUniqArray(100)(surface_id) AS surfaceIds,
    arrayMap(name -> leftUTF8(name, 1024), groupUniqArray(100)(findings.service_name)) AS serviceNames,
    min(day) AS firstDay`,
  ofDetails: `,
    arraySort(arrayMap(version -> leftUTF8(version, 256),
      arrayFilter(version -> version != '', groupUniqArrayMerge(20)(service_versions)))) AS serviceVersions,
    ifNull(uniqCombinedMerge(14)(traces), 0) AS traceCount,
    ifNull(uniqCombinedMerge(14)(sessions), 0) AS sessionCount`,
})

/** Returns a finding, or undefined if it is unknown. */
export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<WholeFindingRow | undefined> {
  const rows = await selectRows<WholeFindingRow>(client, {
    query: QUERY,
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return rows[0]
}
