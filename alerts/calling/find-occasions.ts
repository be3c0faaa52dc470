import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type ArrivalSurfaces,
  type ArrivedFinding,
  selectArrivedFindings,
  selectFirstArrivals,
} from '../../clickhouse/queries/findings/select-arrivals.ts'
import { loadStandings, type MergedWorkspace } from '../../findings/standing.ts'
import type { FindingKind, FindingOccasion } from '../../schemas/records/alerts.ts'
import type { FindingWork } from '../../schemas/records/finding-work.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { occasionId } from '../../shared/ids/occasion-id.ts'

/** Findings of a query. ClickHouse refuses a parameter of 128 KiB, about 3,900 findings. */
const FINDINGS_AT_ONCE = 500

/** Stores in which occasions are found. */
export interface FindOccasionsDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges' | 'findingWork'>
  /** Returns the status for whose end an occasion was found, of each of these findings; null if there is none. */
  readonly called: (workspaceId: string, findingIds: readonly string[]) => Promise<(string | null)[]>
  readonly now: () => number
}

/** The occasions of a time, and the statuses that have ended in it, by finding. */
interface FoundOccasions {
  readonly occasions: readonly FindingOccasion[]
  readonly ended: readonly (readonly [findingId: string, status: string])[]
}

/**
 * Finds what arrived of some surfaces in a time of which everything is stored: findings that are new, that occur again after they
 * were resolved, or that are not ignored any more. The same time has the same occasions, with the same ids.
 */
export async function findOccasions(
  deps: FindOccasionsDeps,
  surfaces: ArrivalSurfaces,
  signal: AbortSignal,
): Promise<FoundOccasions> {
  const { clickhouse, directory } = deps
  const { workspaceId } = surfaces
  const workspace = { workspaceId, merges: await directory.findingMerges(workspaceId) }
  const arrived = await selectArrivedFindings(clickhouse, surfaces, workspace.merges, signal)
  const [occasions, ended] = [[] as FindingOccasion[], [] as [string, string][]]
  for (const some of pagesOf(arrived, FINDINGS_AT_ONCE)) {
    const ids = some.map(({ findingId }) => findingId)
    const [firsts, returned] = await Promise.all([
      selectFirstArrivals(clickhouse, workspace, ids, signal),
      findReturned(deps, workspace, ids, signal),
    ])
    for (const finding of some) {
      const { findingId } = finding
      if ((firsts.get(findingId) ?? 0) >= surfaces.fromMs) {
        occasions.push(occasionOf(workspaceId, 'finding.created', finding))
      }
      // After a pause, a time is long enough for a finding to be new, to be resolved and to come back.
      const kind = returned.get(findingId)?.kind
      if (kind !== undefined) occasions.push(occasionOf(workspaceId, kind, finding))
    }
    for (const [id, { status }] of returned) ended.push([id, status])
  }
  return { occasions, ended }
}

function occasionOf(
  workspaceId: string,
  kind: FindingKind,
  { findingId, surfaceId, arrivedMs }: ArrivedFinding,
): FindingOccasion {
  const id = occasionId([workspaceId, findingId, kind, arrivedMs])
  return { id, kind, workspaceId, findingId, surfaceId, at: new Date(arrivedMs).toISOString() }
}

interface Returned {
  readonly kind: FindingKind
  /** The status that has ended, with the time at which it was chosen. */
  readonly status: string
}

/** Returns the findings that came back although members had resolved or ignored them, unless that was found before. */
async function findReturned(
  { clickhouse, directory, called, now }: FindOccasionsDeps,
  workspace: MergedWorkspace,
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Returned>> {
  const { workspaceId } = workspace
  const works = await directory.findingWork(workspaceId, findingIds)
  const chosen = works.filter(work => work !== undefined && work.status !== 'open') as FindingWork[]
  if (chosen.length === 0) return new Map()
  const ids = chosen.map(({ findingId }) => findingId)
  const findingWork = async () => chosen
  const standings = await loadStandings({ clickhouse, findingWork, now }, workspace, ids, signal)
  const before = await called(workspaceId, ids)
  const returned = new Map<string, Returned>()
  for (const [i, { findingId, status: chose, statusAt }] of chosen.entries()) {
    const standing = standings.get(findingId)?.status
    const status = `${chose} ${statusAt}`
    if (before[i] === status) continue
    if (standing === 'regressed') returned.set(findingId, { kind: 'finding.regressed', status })
    if (standing === 'open') returned.set(findingId, { kind: 'finding.unignored', status })
  }
  return returned
}
