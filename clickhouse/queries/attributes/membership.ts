import type { ClickHouseSettings } from '@clickhouse/client'
import { MIB } from '../../../schemas/units.ts'
import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** When an occurrence was seen: as the client states it, but at most five minutes after its arrival. A column of `exceptions`. */
export const SEEN_UNIX_NANO =
  'least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000)'

/** The finding that a variant is in, of the rows of `finding_variants` that are grouped by it, before merges. */
export const FINDING_OF_VARIANT = 'max(membership).2'

/** Settings of queries that contain all merges of a workspace as text: 10,000 have 620 KB. */
export const MERGES_SETTINGS: ClickHouseSettings = { max_query_size: String(MIB) }

/** Selects the variants {variantIds}, which are hexadecimal digits. */
export const VARIANT_IDS = 'SELECT toFixedString(unhex(arrayJoin({variantIds: Array(String)})), 16)'

/** Most variants of findings that queries bind, so that each of them need not look for them. They have 90 KB. */
const BOUND_VARIANTS = 2_500

/** The id of a finding. A text that is put into a query without being bound is compared with it. */
export const FINDING_ID = /^fnd_[a-z2-7]{26}$/

/**
 * Returns the expression of the finding of a variant, of the rows of `finding_variants` that are grouped by it: the one that it is
 * in, or that this one is merged into. Merges are not bound, so an id that is not one is a TypeError.
 */
function findingOfVariant(merges: FindingMerges): string {
  if (merges.size === 0) return FINDING_OF_VARIANT
  const textOf = (ids: Iterable<string>) => {
    const checked = [...ids]
    if (!checked.every(id => FINDING_ID.test(id)))
      throw new TypeError('a merge has a text that is not the id of a finding')
    return `splitByChar(',', '${checked.join(',')}')`
  }
  const own = `toString(${FINDING_OF_VARIANT})`
  return `toFixedString(transform(${own}, ${textOf(merges.keys())}, ${textOf(merges.values())}, ${own}), 30)`
}

/** Returns the query of the findings, as id, of the variants that a query selects as variant_id. */
export function findingsOfVariants(variants: string, merges: FindingMerges): string {
  return `SELECT variant_id, ${findingOfVariant(merges)} AS id FROM finding_variants
    WHERE workspace_id = {workspaceId: String} AND variant_id IN (${variants}) GROUP BY variant_id`
}

/** Selects the variants that are or were in one of the findings {findingIds}. Few granules are read for it. */
const WERE_IN_FINDINGS = `SELECT variant_id FROM finding_variants
  WHERE workspace_id = {workspaceId: String} AND hasAny(finding_ids, {findingIds: Array(FixedString(30))})`

/** Condition on the rows of variants that are or were in one of the findings {findingIds} of the workspace {workspaceId}. */
const OF_VARIANTS = `workspace_id = {workspaceId: String} AND variant_id IN (${WERE_IN_FINDINGS})`

/** Returns the query of the findings, as id, of the variants that are or were in one of the findings {findingIds}. */
export function findingsOfTheirVariants(merges: FindingMerges): string {
  return findingsOfVariants(WERE_IN_FINDINGS, merges)
}

/**
 * Condition on the rows of the findings {findingIds} of the workspace {workspaceId}, in a table with variants. Those that are
 * merged into them are among the ids.
 */
export const OF_FINDINGS = `workspace_id = {workspaceId: String} AND variant_id IN (
  SELECT variant_id FROM (${findingsOfTheirVariants(new Map())}) WHERE id IN {findingIds: Array(FixedString(30))})`

/** Identifies a finding or several, and the rows that are of them. */
export interface FindingKey {
  readonly workspaceId: string
  /** Ids, and after them those of the findings that are merged into them. */
  readonly findingIds: readonly string[]
  /** The variants as hexadecimal digits, or undefined if there are too many to bind them. */
  readonly variantIds: readonly string[] | undefined
}

/** Returns the parameters of `ofFinding`. */
export function findingParams({ workspaceId, findingIds, variantIds }: FindingKey) {
  return { workspaceId, findingIds, variantIds }
}

/** Returns the condition on the rows of findings, in a table with variants. */
export function ofFinding({ variantIds }: Pick<FindingKey, 'variantIds'>): string {
  return variantIds === undefined
    ? OF_FINDINGS
    : `workspace_id = {workspaceId: String} AND variant_id IN (${VARIANT_IDS})`
}

/** Returns the query of the findings, as id, of variants that contain those of findings. */
export function findingsOfKey({ variantIds }: Pick<FindingKey, 'variantIds'>, merges: FindingMerges): string {
  return variantIds === undefined ? findingsOfTheirVariants(merges) : findingsOfVariants(VARIANT_IDS, merges)
}

/** The variants of findings, and where those are that were in them. */
interface FindingVariants extends Pick<FindingKey, 'variantIds'> {
  /** The finding that those which were in one belong to now: itself, else that of the variant which occurred last. */
  readonly current: string | undefined
}

/** Returns the variants of findings. */
export async function selectFindingVariants(
  client: ClickHouseClient,
  { workspaceId, findingIds }: Omit<FindingKey, 'variantIds'>,
  signal: AbortSignal,
): Promise<FindingVariants> {
  const rows = await selectRows<{ variantId: string; id: string; isIn: 0 | 1 }>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, ${FINDING_OF_VARIANT} AS id, id IN {findingIds: Array(FixedString(30))} AS isIn
      FROM finding_variants WHERE ${OF_VARIANTS}
      GROUP BY variant_id ORDER BY isIn DESC, max(last_stored_at) DESC LIMIT ${BOUND_VARIANTS + 1}`,
    params: { workspaceId, findingIds },
    signal,
    settings: ONE_THREAD,
  })
  const own = rows.filter(({ isIn }) => isIn === 1)
  const variantIds = own.length > BOUND_VARIANTS ? undefined : own.map(({ variantId }) => variantId)
  return { variantIds, current: rows[0]?.id }
}

/** Few variants: a second thread, and what a later read could share, cost more than the read. */
export const ONE_THREAD: ClickHouseSettings = {
  max_threads: 1,
  optimize_move_to_prewhere: 0,
  use_query_condition_cache: 0,
}

interface VariantsKey {
  readonly workspaceId: string
  readonly variantIds: readonly string[]
  readonly merges: FindingMerges
}

const ROW = 'variant_id, trace_id, span_id, source, occurred_at_unix_nano, received_at'

/**
 * Returns the condition that rows of `exceptions` count: that no other row of their trace is the same occurrence. `where` is a
 * condition on the rows by columns which `exception_twins` has too.
 */
export function isCounting(where: string): string {
  return `(${ROW}) NOT IN (
    SELECT ${ROW} FROM exception_twins WHERE ${where} GROUP BY ${ROW} HAVING sum(change) >= max(stored))`
}

/** Returns the findings of these variants, which are hexadecimal digits. */
export async function selectFindingsOfVariants(
  client: ClickHouseClient,
  { workspaceId, variantIds, merges }: VariantsKey,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (variantIds.length === 0) return new Map()
  const rows = await selectRows<{ variantId: string; id: string }>(client, {
    query: `SELECT lower(hex(variant_id)) AS variantId, id FROM (${findingsOfVariants(VARIANT_IDS, merges)})`,
    params: { workspaceId, variantIds: [...new Set(variantIds)] },
    signal,
    settings: { ...MERGES_SETTINGS, ...ONE_THREAD },
  })
  return new Map(rows.map(({ variantId, id }) => [variantId, id]))
}
