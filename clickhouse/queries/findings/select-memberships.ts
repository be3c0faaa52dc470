import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { FINDING_OF_VARIANT, MERGES_SETTINGS, ONE_THREAD, VARIANT_IDS } from '../attributes/membership.ts'

/** The finding that a variant belongs to. */
export interface MembershipRow {
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly findingId: string
  /** Decimal text. */
  readonly rank: string
}

const SETTINGS = { ...MERGES_SETTINGS, ...ONE_THREAD }

/** Returns the query of the findings of the variants {variantIds} of workspaces that meet a condition. */
export function membershipsQuery(ofWorkspaces: string): string {
  return `
    SELECT lower(hex(variant_id)) AS variantId, max(membership).1 AS rank, ${FINDING_OF_VARIANT} AS findingId
    FROM finding_variants WHERE ${ofWorkspaces} AND variant_id IN (${VARIANT_IDS}) GROUP BY variant_id`
}

/** Returns the findings of these variants of any of these workspaces, as far as they are known. */
export function selectMemberships(
  client: ClickHouseClient,
  variants: { readonly workspaceIds: readonly string[]; readonly variantIds: readonly string[] },
  signal: AbortSignal,
): Promise<MembershipRow[]> {
  const query = membershipsQuery('workspace_id IN {workspaceIds: Array(String)}')
  return selectRows<MembershipRow>(client, { query, params: { ...variants }, signal, settings: SETTINGS })
}
