import type { z } from 'zod'
import type { FindingRow } from '../../../clickhouse/queries/findings/finding-row.ts'
import { selectFindings } from '../../../clickhouse/queries/findings/select-findings.ts'
import type { Finding } from '../../../schemas/http/findings/schemas.ts'
import type { PermittedOperation } from '../../../schemas/http/operation.ts'
import type { NewCreation } from '../../../shared/directory/creations.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { withMerged } from '../../../shared/directory/findings/finding-merges.ts'
import { FINDING_WORK_MAX } from '../../../shared/directory/findings/finding-work-store.ts'
import type { Reply, Route } from '../../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from '../../http/body-route.ts'
import type { CreationRouteDeps } from '../../http/creation-route.ts'
import { type CurrentFinding, type CurrentFindingDeps, readCurrentFinding } from '../../http/current-finding.ts'
import { queryDirectory } from '../../http/directory.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import { createOnce, creationOf } from '../../http/idempotency.ts'
import { invalid, type Outcome, renderOutcome, replyUnlessUnavailable } from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { FINDINGS } from '../../http/resource.ts'
import { presentFinding } from '../load-finding.ts'
import { loadStandings, type StandingDeps } from './load-standings.ts'

/** Dependencies of every route that changes a finding. */
export type ChangeRouteDeps = GuardedRouteDeps & CreationRouteDeps

/** A change whose caller is accepted and whose body is valid. */
export interface ChangeRequest<B> extends Pick<BodyRequest<B>, 'caller' | 'body' | 'param'> {
  /** Fires when the deadline of the request has passed or its client has left. */
  readonly deadline: AbortSignal
  /** Undefined for a request that the client cannot repeat. */
  readonly creation: NewCreation | undefined
}

/**
 * Returns the route of an operation that changes a finding. It reads ClickHouse, so it runs within the share of its workspace, and
 * writes to the directory, so it is refused while that is nearly full.
 */
export function changeRoute<S extends z.ZodType, T>(
  { authenticate, directoryMemory, logger, now, queryTimeoutMs, shares }: ChangeRouteDeps,
  operation: PermittedOperation,
  body: S,
  run: (request: ChangeRequest<z.infer<S>>) => Promise<Outcome<T>>,
  reply: (value: T) => Reply,
): Route {
  return bodyRoute(authenticate, operation, {
    resource: FINDINGS,
    body,
    refuse: () => directoryMemory.refuse(),
    handle({ exchange, closed, ...request }) {
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const answer = async (): Promise<Outcome<T>> => {
        const creation = creationOf(operation, request, now())
        if (!creation.ok) return creation
        const asked = { ...request, deadline, creation: creation.value }
        return createOnce(creation.value, request.body, () => run(asked), {})
      }
      const makeReply = async () => renderOutcome(await answer(), { operation, reply })
      const shared = { owner: request.caller.workspaceId, operation, signal: deadline }
      return replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
        operation,
        unavailable: FINDINGS.unavailable,
        logger,
        request: exchange,
        closed,
      })
    },
  })
}

/** A finding that exists. */
export interface ExistingFinding extends CurrentFinding {
  readonly row: FindingRow
}

/** Returns the finding that an id leads to, or undefined. */
export function loadExisting(
  deps: CurrentFindingDeps,
  workspaceId: string,
  askedId: string,
  signal: AbortSignal,
): Promise<ExistingFinding | undefined> {
  return readCurrentFinding(deps, { workspaceId, findingId: askedId }, signal, async finding => {
    const { findingId, merges } = finding
    const [row] = await selectFindings(deps.clickhouse, { workspaceId, findingIds: [findingId], merges }, signal)
    return row && { ...finding, row }
  })
}

/** Returns a stored finding with what members have made of it. */
export async function presentWithStanding(
  deps: StandingDeps,
  { row, ...finding }: ExistingFinding,
  signal: AbortSignal,
) {
  const standings = await loadStandings(deps, finding, [row.id], signal)
  return presentFinding(row, standings.get(row.id)) satisfies Finding
}

/** Stores that {@link makeRoom} reads and changes. */
export interface RoomDeps extends Pick<StandingDeps, 'clickhouse'> {
  readonly directory: Pick<Directory, 'findingMerges' | 'longestUnchanged' | 'forgetFindings'>
}

/** Number of records that are looked at to make room, those that changed the longest ago. */
const LOOKED_AT_FOR_ROOM = 1_000

/** The refusal of work on one more finding. */
export const TOO_MANY_FINDINGS = invalid(
  `a workspace can have a status, an assignee, comments or merges for at most ${FINDING_WORK_MAX} findings, and all of them still occur`,
)

/**
 * Removes records of findings that are not retained any more, nor are those that are merged into them. Returns whether there were
 * any.
 */
export async function makeRoom(
  { clickhouse, directory }: RoomDeps,
  workspaceId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const merges = await queryDirectory(directory.findingMerges(workspaceId))
  const oldest = await queryDirectory(directory.longestUnchanged(workspaceId, LOOKED_AT_FOR_ROOM))
  const findingIds = [...new Set(withMerged(merges, oldest))]
  const retained = await selectFindings(clickhouse, { workspaceId, findingIds, merges: new Map() }, signal)
  const kept = new Set(retained.flatMap(({ id }) => [id, merges.get(id) ?? id]))
  const gone = oldest.filter(id => !kept.has(id))
  await queryDirectory(directory.forgetFindings(workspaceId, gone))
  return gone.length > 0
}
