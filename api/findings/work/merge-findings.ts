import { selectFindings } from '../../../clickhouse/queries/findings/select-findings.ts'
import {
  mergeFindings,
  mergeFindingsSchema,
  splitFinding,
  splitFindingSchema,
} from '../../../schemas/http/findings/merges.ts'
import type { FindingChanged } from '../../../schemas/http/findings/schemas.ts'
import { MERGED_MAX } from '../../../schemas/records/finding-work.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import type { Merge } from '../../../shared/directory/findings/finding-merge-store.ts'
import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { Route } from '../../../shared/http/route.ts'
import { authorOf, queryDirectory } from '../../http/directory.ts'
import { invalid, type Outcome, okReply, type Refusal } from '../../http/outcome.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import {
  type ChangeRequest,
  type ChangeRouteDeps,
  changeRoute,
  loadExisting,
  makeRoom,
  presentWithStanding,
  type RoomDeps,
  TOO_MANY_FINDINGS,
} from './change-route.ts'
import type { StandingDeps } from './load-standings.ts'

/** Dependencies of merging and splitting findings. */
interface Deps extends ChangeRouteDeps, RoomDeps, StandingDeps {
  readonly directory: StandingDeps['directory'] &
    RoomDeps['directory'] &
    Pick<Directory, 'mergeFindings' | 'splitFinding'>
}

/** Returns the routes that merge and split findings (docs/api/findings.md#merges). */
export function findingMergeRoutes(deps: Deps): Route[] {
  return [mergeFindingsRoute(deps), splitFindingRoute(deps)]
}

const ITSELF = invalid('findingIds must not have the finding that they are merged with')
const NOT_MERGED = invalid('findingId must be a finding that is merged into this one')
const TOO_MANY_MERGED = invalid(`a finding can have at most ${MERGED_MAX} findings merged into it`)

/** Returns the route that merges findings into the one of them that was seen first. */
function mergeFindingsRoute(deps: Deps): Route {
  async function merge(request: ChangeRequest<{ findingIds: string[] }>): Promise<Outcome<FindingChanged>> {
    const { caller, body, param, deadline } = request
    const { workspaceId } = caller
    const askedId = param('findingId')
    if (body.findingIds.includes(askedId)) return ITSELF
    const before = await loadExisting(deps, workspaceId, askedId, deadline)
    if (before === undefined) return notFound(FINDINGS)
    let refusal: Refusal | undefined
    const choose = async (merges: FindingMerges) => {
      const chosen = await chooseMerge(deps, { workspaceId, merges }, [askedId, ...body.findingIds], deadline)
      refusal = chosen.ok ? undefined : chosen
      return chosen.ok ? chosen.value : undefined
    }
    const author = authorOf(caller, deps.now())
    const commit = () => queryDirectory(deps.directory.mergeFindings(workspaceId, choose, author))
    let outcome = await commit()
    if (outcome === 'too_many_findings' && (await makeRoom(deps, workspaceId, deadline))) outcome = await commit()
    if (refusal !== undefined) return refusal
    if (outcome === 'too_many_findings') return TOO_MANY_FINDINGS
    if (outcome === 'too_many_merged') return TOO_MANY_MERGED
    const finding = await loadExisting(deps, workspaceId, askedId, deadline)
    if (finding === undefined) return notFound(FINDINGS)
    return { ok: true, value: { finding: await presentWithStanding(deps, finding, deadline) } }
  }
  return changeRoute(deps, mergeFindings, mergeFindingsSchema, merge, okReply)
}

/** Chooses the finding that stays: the one that was seen first, of all occurrences of each. */
async function chooseMerge(
  deps: Deps,
  { workspaceId, merges }: { readonly workspaceId: string; readonly merges: FindingMerges },
  asked: readonly string[],
  signal: AbortSignal,
): Promise<Outcome<Merge>> {
  const findingIds = [...new Set(asked.map(id => merges.get(id) ?? id))]
  const rows = await selectFindings(deps.clickhouse, { workspaceId, findingIds, merges }, signal)
  const found = new Map(rows.map(row => [row.id, row]))
  // All of a finding may have moved to another one.
  for (const id of asked.filter(other => !found.has(merges.get(other) ?? other))) {
    const current = await loadExisting(deps, workspaceId, id, signal)
    if (current === undefined) return invalid(`findingIds must have findings of the workspace: ${id} is none`)
    found.set(current.findingId, current.row)
  }
  const seen = [...found.values()].map(({ id, firstSeenUnixNano }) => ({ id, at: BigInt(firstSeenUnixNano) }))
  const [into = '', ...others] = seen
    .sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1))
    .map(({ id }) => id)
  return { ok: true, value: { into, findingIds: others } }
}

/** Returns the route that makes a merged finding one of its own again. */
function splitFindingRoute(deps: Deps): Route {
  async function split(request: ChangeRequest<{ findingId: string }>): Promise<Outcome<FindingChanged>> {
    const { caller, body, param, deadline } = request
    const { workspaceId } = caller
    const from = await loadExisting(deps, workspaceId, param('findingId'), deadline)
    if (from === undefined) return notFound(FINDINGS)
    const key = { workspaceId, findingId: body.findingId }
    const author = authorOf(caller, deps.now())
    const outcome = await queryDirectory(deps.directory.splitFinding(key, from.findingId, author))
    if (outcome === 'not_merged') return NOT_MERGED
    const finding = await loadExisting(deps, workspaceId, body.findingId, deadline)
    if (finding === undefined) return notFound(FINDINGS)
    return { ok: true, value: { finding: await presentWithStanding(deps, finding, deadline) } }
  }
  return changeRoute(deps, splitFinding, splitFindingSchema, split, okReply)
}
