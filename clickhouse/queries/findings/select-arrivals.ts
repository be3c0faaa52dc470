import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfTheirVariants, findingsOfVariants, MERGES_SETTINGS } from '../attributes/membership.ts'

/** A time of arrival of exceptions: whole seconds, `toMs` excluded. Unix ms. */
interface ArrivalWindow {
  readonly fromMs: number
  readonly toMs: number
  /** Whether it is that of spans that failed without an exception of their own. */
  readonly ofFailures: boolean
}

/** Surfaces of a workspace whose arrivals are read. */
export interface ArrivalSurfaces extends ArrivalWindow {
  readonly workspaceId: string
  readonly surfaceIds: readonly string[]
}

/** A finding of which something arrived. */
export interface ArrivedFinding {
  readonly findingId: string
  /** One of the surfaces. */
  readonly surfaceId: string
  /** Beginning of the two seconds in which the first of it arrived, Unix ms. */
  readonly arrivedMs: number
}

const DURING = `arrived >= fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC') AND arrived < fromUnixTimestamp64Milli({toMs: Int64}, 'UTC')
  AND is_failure = {ofFailures: Bool}`

/** Returns the workspaces of which exceptions arrived in a time. */
export async function selectArrivedWorkspaces(
  client: ClickHouseClient,
  window: ArrivalWindow,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const rows = await selectRows<{ workspaceId: string }>(client, {
    query: `SELECT DISTINCT workspace_id AS workspaceId FROM finding_arrivals WHERE ${DURING}`,
    params: { ...window },
    signal,
  })
  return new Set(rows.map(({ workspaceId }) => workspaceId))
}

/** Returns the findings of which exceptions of some surfaces arrived in a time, in the order of their arrival. */
export async function selectArrivedFindings(
  client: ClickHouseClient,
  surfaces: ArrivalSurfaces,
  merges: FindingMerges,
  signal: AbortSignal,
): Promise<ArrivedFinding[]> {
  const arrived = `workspace_id = {workspaceId: String} AND surface_id IN {surfaceIds: Array(String)} AND ${DURING}`
  const variants = findingsOfVariants(`SELECT variant_id FROM finding_arrivals WHERE ${arrived}`, merges)
  const rows = await selectRows<{ findingId: string; surfaceId: string; arrivedS: number }>(client, {
    query: `
      SELECT id AS findingId, argMin(surface, first) AS surfaceId, toUnixTimestamp(min(first)) AS arrivedS
      FROM (
        SELECT variant_id, any(surface_id) AS surface, min(arrived) AS first
        FROM finding_arrivals WHERE ${arrived} GROUP BY variant_id) AS arrivals
      INNER JOIN (${variants}) AS variants USING (variant_id)
      GROUP BY id ORDER BY arrivedS, id`,
    params: { ...surfaces },
    signal,
    settings: MERGES_SETTINGS,
  })
  return rows.map(({ findingId, surfaceId, arrivedS }) => ({ findingId, surfaceId, arrivedMs: arrivedS * 1_000 }))
}

/** Returns when the first retained occurrence of each of these findings was received, Unix ms. */
export async function selectFirstArrivals(
  client: ClickHouseClient,
  { workspaceId, merges }: { readonly workspaceId: string; readonly merges: FindingMerges },
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  if (findingIds.length === 0) return new Map()
  const variants = findingsOfTheirVariants(merges)
  const rows = await selectRows<{ id: string; firstMs: string }>(client, {
    query: `
      SELECT id, toUnixTimestamp64Milli(min(first)) AS firstMs
      FROM (
        SELECT variant_id, min(first_received_at) AS first FROM findings
        WHERE workspace_id = {workspaceId: String} AND variant_id IN (SELECT variant_id FROM (${variants}))
        GROUP BY variant_id) AS occurred
      INNER JOIN (${variants}) AS variants USING (variant_id)
      WHERE id IN {findingIds: Array(FixedString(30))}
      GROUP BY id`,
    params: { workspaceId, findingIds },
    signal,
    settings: MERGES_SETTINGS,
  })
  return new Map(rows.map(({ id, firstMs }) => [id, Number(firstMs)]))
}
