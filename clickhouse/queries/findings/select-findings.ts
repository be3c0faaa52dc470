import { type FindingMerges, partsOf } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingParams, ONE_THREAD, selectFindingVariants, VARIANT_IDS } from '../attributes/membership.ts'
import {
  type CountedFinding,
  countedQuery,
  type FindingDetails,
  type FindingRow,
  type LatestPlace,
} from './finding-row.ts'
import { FINDING_SET_SETTINGS } from './finding-set.ts'
import { FINDINGS_SETTINGS } from './findings-settings.ts'

/**
 * Returns the current state of these findings of a workspace, in no order. Texts are read in a second query, of the one row of each
 * finding that has the latest: a read of them opens granules with the texts of 64 variants.
 */
export async function selectFindings(
  client: ClickHouseClient,
  { workspaceId, findingIds, merges }: FindingsKey,
  signal: AbortSignal,
): Promise<FindingRow[]> {
  const found: FindingRow[] = []
  for (const part of partsOf(merges, findingIds)) {
    const ofPart = { workspaceId, findingIds: part.findingIds }
    const key = { ...ofPart, ...(await selectFindingVariants(client, ofPart, signal)) }
    const counted = await selectRows<CountedFinding & LatestPlace>(client, {
      query: countedQuery(key, part.merges),
      params: findingParams(key),
      signal,
      settings: { ...FINDINGS_SETTINGS, ...FINDING_SET_SETTINGS },
    })
    const details = await selectFindingDetails(client, workspaceId, counted, signal)
    found.push(...counted.map((row, i) => ({ ...row, ...(details[i] as FindingDetails) })))
  }
  return found
}

interface FindingsKey {
  readonly workspaceId: string
  /** None of them is merged into another one. */
  readonly findingIds: readonly string[]
  readonly merges: FindingMerges
}

/** Returns the texts of findings, in their order. */
async function selectFindingDetails(
  client: ClickHouseClient,
  workspaceId: string,
  places: readonly LatestPlace[],
  signal: AbortSignal,
): Promise<FindingDetails[]> {
  if (places.length === 0) return []
  const variantIds = places.map(({ latestVariant }) => latestVariant)
  const texts = selectRows<Omit<FindingDetails, 'topFrame'> & LatestPlace>(client, {
    query: `
      SELECT toUInt16(day) AS latestDay, lower(hex(variant_id)) AS latestVariant, max(latest) AS last,
             last.type AS type, last.message AS message
      FROM findings
      WHERE workspace_id = {workspaceId: String} AND day IN (SELECT toDate(arrayJoin({days: Array(UInt16)})))
        AND variant_id IN (${VARIANT_IDS})
      GROUP BY day, variant_id`,
    params: {
      workspaceId,
      days: [...new Set(places.map(({ latestDay }) => latestDay))],
      variantIds,
    },
    signal,
    settings: FINDINGS_SETTINGS,
  })
  const frames = selectRows<{ variantId: string; text: string }>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, max(top_frame).2 AS text FROM finding_variants
      WHERE workspace_id = {workspaceId: String} AND variant_id IN (${VARIANT_IDS}) GROUP BY variant_id`,
    params: { workspaceId, variantIds },
    signal,
    settings: ONE_THREAD,
  })
  const [rows, frameRows] = await Promise.all([texts, frames])
  const frameOf = new Map(frameRows.map(({ variantId, text }) => [variantId, text]))
  const keyOf = ({ latestDay, latestVariant }: LatestPlace) => `${latestDay} ${latestVariant}`
  const found = new Map(rows.map(row => [keyOf(row), row]))
  return places.map(place => {
    const { type = '', message = '' } = found.get(keyOf(place)) ?? {}
    return { type, message, topFrame: frameOf.get(place.latestVariant) ?? '' }
  })
}
