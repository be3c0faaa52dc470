import type { z } from 'zod'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingRow } from '../../../clickhouse/queries/findings/finding-row.ts'
import { selectFindings } from '../../../clickhouse/queries/findings/select-findings.ts'
import { type Finding, findingIdSchema } from '../../../schemas/http/findings/schemas.ts'
import type { PermittedOperation } from '../../../schemas/http/operation.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import {
  type ChangedWork,
  COMMENT_BYTES_MAX,
  FINDING_WORK_MAX,
  type FindingOfWorkspace,
} from '../../../shared/directory/findings/finding-work-store.ts'
import type { Reply, Route } from '../../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from '../../http/body-route.ts'
import type { CreationRouteDeps } from '../../http/creation-route.ts'
import { queryDirectory } from '../../http/directory.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import { invalid, type Outcome, renderOutcome, replyUnlessUnavailable } from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { FINDINGS } from '../../http/resource.ts'
import { presentFinding } from '../load-finding.ts'
import { loadStandings, type StandingDeps } from './standing.ts'

/** Dependencies of every route that changes a finding. */
type ChangeRouteDeps = GuardedRouteDeps & CreationRouteDeps

/** A change whose caller is accepted and whose body is valid. */
export interface ChangeRequest<B> extends Pick<BodyRequest<B>, 'caller' | 'body' | 'param'> {
  /** Fires when the deadline of the request has passed or its client has left. */
  readonly deadline: AbortSignal
}

/**
 * Returns the route of an operation that changes a finding. It reads ClickHouse, so it runs within the share of its workspace, and
 * writes to the directory, so it is refused while that is nearly full.
 */
export function changeRoute<S extends z.ZodType, T>(
  { authenticate, directoryMemory, logger, queryTimeoutMs, shares }: ChangeRouteDeps,
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
      const makeReply = async () => renderOutcome(await run({ ...request, deadline }), { operation, reply })
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

/** Dependencies of every route that changes a finding. */
export interface ChangeDeps extends ChangeRouteDeps, StandingDeps {
  readonly directory: Pick<
    Directory,
    'findingWork' | 'changeFinding' | 'longestUnchanged' | 'forgetFindings' | 'member'
  >
}

/** Number of records that are looked at to make room, those that changed the longest ago. */
const LOOKED_AT_FOR_ROOM = 1_000
const TOO_MANY_FINDINGS = invalid(
  `a workspace can have a status, an assignee or comments for at most ${FINDING_WORK_MAX} findings, and all of them still occur`,
)
const TOO_MANY_COMMENTS = invalid(`the comments of a workspace can have at most ${COMMENT_BYTES_MAX} bytes`)

/** Returns a finding that exists, or undefined. */
export async function loadExisting(
  clickhouse: ClickHouseClient,
  workspaceId: string,
  findingId: string,
  signal: AbortSignal,
): Promise<FindingRow | undefined> {
  if (!findingIdSchema.safeParse(findingId).success) return undefined
  const [row] = await selectFindings(clickhouse, { workspaceId, findingIds: [findingId] }, signal)
  return row
}

/** Returns a stored finding with what members have made of it. */
export async function presentWithStanding(
  deps: StandingDeps,
  workspaceId: string,
  row: FindingRow,
  signal: AbortSignal,
) {
  const standings = await loadStandings(deps, workspaceId, [row.id], signal)
  return presentFinding(row, standings.get(row.id)) satisfies Finding
}

/** Returns the record of a finding before a member has worked on it. */
export function untouched({ workspaceId, findingId }: FindingOfWorkspace, changedAt: string): FindingWork {
  return {
    ...{ version: 1, workspaceId, findingId, status: 'open', statusAt: null, assignee: null },
    ...{ commentBytes: 0, changedAt },
  }
}

/**
 * Changes a finding. If the workspace has too many records, those of findings that are not retained any more are removed, and the
 * change is tried again.
 */
export async function commitChange(
  { clickhouse, directory }: ChangeDeps,
  finding: FindingOfWorkspace,
  change: (before: FindingWork | undefined) => ChangedWork,
  signal: AbortSignal,
): Promise<Outcome<FindingWork>> {
  const { workspaceId } = finding
  let outcome = await queryDirectory(directory.changeFinding(finding, change))
  if (outcome === 'too_many_findings') {
    const oldest = await queryDirectory(directory.longestUnchanged(workspaceId, LOOKED_AT_FOR_ROOM))
    const retained = await selectFindings(clickhouse, { workspaceId, findingIds: oldest }, signal)
    const kept = new Set(retained.map(({ id }) => id))
    const gone = oldest.filter(id => !kept.has(id))
    await queryDirectory(directory.forgetFindings(workspaceId, gone))
    if (gone.length > 0) outcome = await queryDirectory(directory.changeFinding(finding, change))
  }
  if (outcome === 'too_many_findings') return TOO_MANY_FINDINGS
  return outcome === 'too_many_comments' ? TOO_MANY_COMMENTS : { ok: true, value: outcome }
}
