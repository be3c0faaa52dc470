import type { z } from 'zod'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingRow } from '../../../clickhouse/queries/findings/finding-row.ts'
import { selectFindings } from '../../../clickhouse/queries/findings/select-findings.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import { selectVersions } from '../../../clickhouse/queries/findings/select-versions.ts'
import { changeFinding, commentFinding, listFindingActivity } from '../../../schemas/http/findings/operations.ts'
import { type Finding, type FindingChanged, findingIdSchema } from '../../../schemas/http/findings/schemas.ts'
import {
  type ChangeFinding,
  type CommentCreated,
  changeFindingSchema,
  commentFindingSchema,
  type FindingActivityPage,
} from '../../../schemas/http/findings/work.ts'
import type { PermittedOperation } from '../../../schemas/http/operation.ts'
import { pageQuerySchema } from '../../../schemas/http/page.ts'
import type { Actor, FindingEntry } from '../../../schemas/records/change.ts'
import { type FindingWork, KNOWN_VERSIONS_MAX } from '../../../schemas/records/finding-work.ts'
import type { NewCreation, Once } from '../../../shared/directory/creations.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import {
  type ChangedWork,
  COMMENT_BYTES_MAX,
  FINDING_WORK_MAX,
  type FindingOfWorkspace,
} from '../../../shared/directory/findings/finding-work-store.ts'
import type { Reply, Route } from '../../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from '../../http/body-route.ts'
import type { CreationRouteDeps } from '../../http/creation-route.ts'
import { actorOf, cutDirectoryPage, directoryPage, onceOf, queryDirectory, withOneMore } from '../../http/directory.ts'
import { dayOf, rfc3339FromUnixMs } from '../../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { createOnce, creationOf } from '../../http/idempotency.ts'
import {
  createdReply,
  invalid,
  type Outcome,
  okReply,
  renderOutcome,
  replyUnlessUnavailable,
} from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import { presentFinding } from '../load-finding.ts'
import { loadStandings, type StandingDeps, versionDigest } from './standing.ts'

interface Deps extends GuardedRouteDeps, ChangeDeps {
  readonly directory: ChangeDeps['directory'] & Pick<Directory, 'findingActivity'>
}

/** Returns the routes by which members work on findings (docs/api/findings.md#finding-work). */
export function findingWorkRoutes(deps: Deps): Route[] {
  return [changeFindingRoute(deps), commentFindingRoute(deps), listFindingActivityRoute(deps)]
}

const NOT_A_MEMBER = invalid('assignee must be the id of a member of the workspace, or null')
const PAST = invalid('ignoreUntil must be in the future')

/** Returns the route that resolves, ignores, reopens and assigns a finding (docs/api/findings.md#finding-work). */
function changeFindingRoute(deps: Deps): Route {
  const { clickhouse, directory, now } = deps
  async function change(request: ChangeRequest<ChangeFinding>): Promise<Outcome<FindingChanged>> {
    const { caller, body, param, deadline } = request
    const { workspaceId } = caller
    const finding = { workspaceId, findingId: param('findingId') }
    const row = await loadExisting(clickhouse, workspaceId, finding.findingId, deadline)
    if (row === undefined) return notFound(FINDINGS)
    const nowMs = now()
    const { assignee, ignoreUntil } = body
    if (ignoreUntil !== undefined && Date.parse(ignoreUntil) <= nowMs) return PAST
    if (assignee && (await queryDirectory(directory.member(workspaceId, assignee))) === undefined) return NOT_A_MEMBER
    const status = await newStatus(clickhouse, finding, body, nowMs, deadline)
    const at = rfc3339FromUnixMs(nowMs)
    const apply = (before: FindingWork | undefined) => {
      const work = { ...(before ?? untouched(finding, at)), changedAt: at, ...(assignee !== undefined && { assignee }) }
      const entries = entriesOf(body, before?.assignee ?? null, actorOf(caller), at)
      return { work: status === undefined ? work : withStatus(work, status), entries }
    }
    const changed = await commitChange(deps, finding, apply, deadline)
    if (!changed.ok) return changed
    return { ok: true, value: { finding: await presentWithStanding(deps, workspaceId, row, deadline) } }
  }
  return changeRoute(deps, changeFinding, changeFindingSchema, change, okReply)
}

type NewStatus = Pick<FindingWork, 'status' | 'statusAt' | 'knownVersions' | 'until' | 'occurrences' | 'countedBefore'>

/** Returns the status that a change chooses, with what has occurred so far as far as the status depends on it. */
async function newStatus(
  clickhouse: ClickHouseClient,
  { workspaceId, findingId }: FindingOfWorkspace,
  { status, ignoreUntil, ignoreOccurrences }: ChangeFinding,
  nowMs: number,
  signal: AbortSignal,
): Promise<NewStatus | undefined> {
  if (status === undefined) return undefined
  const chosen = { status, statusAt: rfc3339FromUnixMs(nowMs) }
  if (status === 'resolved') {
    const versions = await selectVersions(clickhouse, { workspaceId, findingId }, KNOWN_VERSIONS_MAX, signal)
    return { ...chosen, knownVersions: versions.map(versionDigest) }
  }
  if (status === 'open') return chosen
  const until = ignoreUntil === undefined ? {} : { until: rfc3339FromUnixMs(Date.parse(ignoreUntil)) }
  if (ignoreOccurrences === undefined) return { ...chosen, ...until }
  const today = [{ findingId, day: dayOf(nowMs) }]
  const [counted] = await selectRecurrences(clickhouse, workspaceId, today, signal)
  const countedBefore = Number(counted?.occurrenceCount ?? 0)
  return { ...chosen, ...until, occurrences: ignoreOccurrences, countedBefore }
}

/** Replaces the status of a record, with everything that belongs to the previous one. */
function withStatus(work: FindingWork, status: NewStatus): FindingWork {
  const { knownVersions: _, until: _until, occurrences: _occurrences, countedBefore: _counted, ...rest } = work
  return { ...rest, ...status }
}

const ACTION_OF = { resolved: 'resolved', ignored: 'ignored', open: 'reopened' } as const

/** Returns what a change is in the activity of the finding. Assigning it to whom it is assigned is nothing. */
function entriesOf(body: ChangeFinding, assigned: string | null, by: Actor, createdAt: string): FindingEntry[] {
  const { status, ignoreUntil, ignoreOccurrences, assignee } = body
  const entries: FindingEntry[] = []
  const add = (entry: Pick<FindingEntry, 'action' | 'until' | 'occurrences' | 'assignee'>) =>
    entries.push({ id: newId('act'), createdAt, by, ...entry })
  if (status !== undefined) {
    add({
      action: ACTION_OF[status],
      ...(ignoreUntil !== undefined && { until: rfc3339FromUnixMs(Date.parse(ignoreUntil)) }),
      ...(ignoreOccurrences !== undefined && { occurrences: ignoreOccurrences }),
    })
  }
  if (assignee !== undefined && assignee !== assigned) {
    add(assignee === null ? { action: 'unassigned' } : { action: 'assigned', assignee })
  }
  return entries
}

/** Returns the route that comments on a finding (docs/api/findings.md#finding-work). */
function commentFindingRoute(deps: Deps): Route {
  async function comment(request: ChangeRequest<{ text: string }>): Promise<Outcome<CommentCreated>> {
    const { caller, body, param, deadline, creation } = request
    const finding = { workspaceId: caller.workspaceId, findingId: param('findingId') }
    const row = await loadExisting(deps.clickhouse, finding.workspaceId, finding.findingId, deadline)
    if (row === undefined) return notFound(FINDINGS)
    const { text } = body
    const at = rfc3339FromUnixMs(deps.now())
    const entry: FindingEntry = { id: newId('act'), createdAt: at, by: actorOf(caller), action: 'commented', text }
    const change = (before: FindingWork | undefined) => {
      const work = before ?? untouched(finding, at)
      const commentBytes = work.commentBytes + Buffer.byteLength(text)
      return { work: { ...work, commentBytes, changedAt: at }, entries: [entry] }
    }
    const once = onceOf(creation, () => ({ entry }))
    const changed = await commitChange(deps, finding, change, deadline, once)
    return changed.ok ? { ok: true, value: { entry } } : changed
  }
  return changeRoute(deps, commentFinding, commentFindingSchema, comment, createdReply)
}

/** Returns the route that lists what members have done with a finding, newest first (docs/api/findings.md#finding-work). */
function listFindingActivityRoute(deps: Deps): Route {
  const { clickhouse, directory } = deps
  return guardedRoute(deps, listFindingActivity, {
    resource: FINDINGS,
    query: pageQuerySchema,
    async run({ workspaceId, param, query, deadline }): Promise<Outcome<FindingActivityPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const findingId = param('findingId')
      const row = await loadExisting(clickhouse, workspaceId, findingId, deadline)
      if (row === undefined) return notFound(FINDINGS)
      const finding = { workspaceId, findingId }
      const found = await queryDirectory(directory.findingActivity(finding, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { activity: [...shown], nextCursor } }
    },
  })
}

/** Dependencies of every route that changes a finding. */
type ChangeRouteDeps = GuardedRouteDeps & CreationRouteDeps

/** A change whose caller is accepted and whose body is valid. */
interface ChangeRequest<B> extends Pick<BodyRequest<B>, 'caller' | 'body' | 'param'> {
  /** Fires when the deadline of the request has passed or its client has left. */
  readonly deadline: AbortSignal
  /** Undefined for a request that the client cannot repeat. */
  readonly creation: NewCreation | undefined
}

/**
 * Returns the route of an operation that changes a finding. It reads ClickHouse, so it runs within the share of its workspace, and
 * writes to the directory, so it is refused while that is nearly full.
 */
function changeRoute<S extends z.ZodType, T>(
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

/** Dependencies of every route that changes a finding. */
interface ChangeDeps extends ChangeRouteDeps, StandingDeps {
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
async function loadExisting(
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
async function presentWithStanding(deps: StandingDeps, workspaceId: string, row: FindingRow, signal: AbortSignal) {
  const standings = await loadStandings(deps, workspaceId, [row.id], signal)
  return presentFinding(row, standings.get(row.id)) satisfies Finding
}

/** Returns the record of a finding before a member has worked on it. */
function untouched({ workspaceId, findingId }: FindingOfWorkspace, changedAt: string): FindingWork {
  return {
    ...{ version: 1, workspaceId, findingId, status: 'open', statusAt: null, assignee: null },
    ...{ commentBytes: 0, changedAt },
  }
}

/**
 * Changes a finding. If the workspace has too many records, those of findings that are not retained any more are removed, and the
 * change is tried again.
 */
async function commitChange(
  { clickhouse, directory }: ChangeDeps,
  finding: FindingOfWorkspace,
  change: (before: FindingWork | undefined) => ChangedWork,
  signal: AbortSignal,
  once?: Once,
): Promise<Outcome<FindingWork>> {
  const { workspaceId } = finding
  let outcome = await queryDirectory(directory.changeFinding(finding, change, once))
  if (outcome === 'too_many_findings') {
    const oldest = await queryDirectory(directory.longestUnchanged(workspaceId, LOOKED_AT_FOR_ROOM))
    const retained = await selectFindings(clickhouse, { workspaceId, findingIds: oldest }, signal)
    const kept = new Set(retained.map(({ id }) => id))
    const gone = oldest.filter(id => !kept.has(id))
    await queryDirectory(directory.forgetFindings(workspaceId, gone))
    if (gone.length > 0) outcome = await queryDirectory(directory.changeFinding(finding, change, once))
  }
  if (outcome === 'too_many_findings') return TOO_MANY_FINDINGS
  return outcome === 'too_many_comments' ? TOO_MANY_COMMENTS : { ok: true, value: outcome }
}
