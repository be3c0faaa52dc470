import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type FindingKey, selectFindingVariants } from '../../clickhouse/queries/attributes/membership.ts'
import { findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { FindingOfWorkspace } from '../../shared/directory/findings/activity.ts'
import { type FindingMerges, withMerged } from '../../shared/directory/findings/finding-merges.ts'
import { queryDirectory } from './directory.ts'

/** A finding under the id that it was merged into. `findingIds` begins with it, and has all that are merged into it. */
interface MergedFinding extends Omit<FindingKey, 'variantIds'> {
  readonly findingId: string
  /** All merges of the workspace. */
  readonly merges: FindingMerges
}

/** A finding under its current id, which is the first one of `findingIds`. */
export interface CurrentFinding extends MergedFinding, FindingKey {}

/** Stores by which the finding of an id is found. */
export interface CurrentFindingDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges'>
}

/**
 * Returns the finding that an id was merged into, or that of the id, with all that are merged into it. It need not exist. Returns
 * undefined for a text that is not the id of a finding.
 */
export async function mergedFinding(
  { directory }: Pick<CurrentFindingDeps, 'directory'>,
  { workspaceId, findingId }: FindingOfWorkspace,
): Promise<MergedFinding | undefined> {
  if (!findingIdSchema.safeParse(findingId).success) return undefined
  return mergedOf(workspaceId, findingId, await queryDirectory(directory.findingMerges(workspaceId)))
}

function mergedOf(workspaceId: string, asked: string, merges: FindingMerges): MergedFinding {
  const findingId = merges.get(asked) ?? asked
  return { workspaceId, findingId, findingIds: withMerged(merges, [findingId]), merges }
}

/**
 * Reads a finding, or what belongs to it, by an id. If all of it has moved to another finding, that is read instead, so that links
 * stay valid. Returns undefined for an unknown finding. `read` may too, for one whose occurrences have all expired.
 */
export async function readCurrentFinding<T>(
  deps: CurrentFindingDeps,
  asked: FindingOfWorkspace,
  signal: AbortSignal,
  read: (finding: CurrentFinding) => Promise<T | undefined>,
): Promise<T | undefined> {
  const finding = await mergedFinding(deps, asked)
  if (finding === undefined) return undefined
  const { variantIds, current } = await selectFindingVariants(deps.clickhouse, finding, signal)
  if (variantIds?.length !== 0) return read({ ...finding, variantIds })
  if (current === undefined) return undefined
  const next = mergedOf(finding.workspaceId, current, finding.merges)
  const moved = await selectFindingVariants(deps.clickhouse, next, signal)
  return read({ ...next, variantIds: moved.variantIds })
}
