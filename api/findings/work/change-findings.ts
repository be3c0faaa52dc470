import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import { selectVersions } from '../../../clickhouse/queries/findings/select-versions.ts'
import { versionDigest } from '../../../findings/standing.ts'
import { changeFinding, commentFinding, listFindingActivity } from '../../../schemas/http/findings/operations.ts'
import type { FindingChanged } from '../../../schemas/http/findings/schemas.ts'
import {
  type ChangeFinding,
  type CommentCreated,
  changeFindingSchema,
  commentFindingSchema,
  type FindingActivityPage,
} from '../../../schemas/http/findings/work.ts'
import { pageQuerySchema } from '../../../schemas/http/page.ts'
import type { Actor, FindingEntry } from '../../../schemas/records/change.ts'
import { type FindingWork, KNOWN_VERSIONS_MAX } from '../../../schemas/records/finding-work.ts'
import type { Once } from '../../../shared/directory/creations.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import { ACTIVITY_BYTES_MAX, type FindingOfWorkspace } from '../../../shared/directory/findings/activity.ts'
import type { ChangedWork } from '../../../shared/directory/findings/finding-work-store.ts'
import type { Route } from '../../../shared/http/route.ts'
import { actorOf, cutDirectoryPage, directoryPage, onceOf, queryDirectory, withOneMore } from '../../http/directory.ts'
import { dayOf, rfc3339FromUnixMs } from '../../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { createdReply, invalid, type Outcome, okReply } from '../../http/outcome.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import {
  type ChangeRequest,
  type ChangeRouteDeps,
  changeRoute,
  type ExistingFinding,
  loadExisting,
  makeRoom,
  presentWithStanding,
  type RoomDeps,
  TOO_MANY_FINDINGS,
} from './change-route.ts'
import type { StandingDeps } from './load-standings.ts'

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
    const finding = await loadExisting(deps, workspaceId, param('findingId'), deadline)
    if (finding === undefined) return notFound(FINDINGS)
    const nowMs = now()
    const { assignee, ignoreUntil } = body
    if (ignoreUntil !== undefined && Date.parse(ignoreUntil) <= nowMs) return PAST
    if (assignee && (await queryDirectory(directory.member(workspaceId, assignee))) === undefined) return NOT_A_MEMBER
    const status = await newStatus(clickhouse, finding, body, nowMs, deadline)
    const at = rfc3339FromUnixMs(nowMs)
    const apply = (before: FindingWork) => {
      const work = { ...before, ...(assignee !== undefined && { assignee }) }
      const entries = entriesOf(body, before.assignee, actorOf(caller), at)
      return { work: status === undefined ? work : withStatus(work, status), entries }
    }
    const changed = await commitChange(deps, finding, at, apply, deadline)
    if (!changed.ok) return changed
    return { ok: true, value: { finding: await presentWithStanding(deps, finding, deadline) } }
  }
  return changeRoute(deps, changeFinding, changeFindingSchema, change, okReply)
}

type NewStatus = Pick<FindingWork, 'status' | 'statusAt' | 'knownVersions' | 'until' | 'occurrences' | 'countedBefore'>

/** Returns the status that a change chooses, with what has occurred so far as far as the status depends on it. */
async function newStatus(
  clickhouse: ClickHouseClient,
  finding: ExistingFinding,
  { status, ignoreUntil, ignoreOccurrences }: ChangeFinding,
  nowMs: number,
  signal: AbortSignal,
): Promise<NewStatus | undefined> {
  if (status === undefined) return undefined
  const chosen = { status, statusAt: rfc3339FromUnixMs(nowMs) }
  if (status === 'resolved') {
    const versions = await selectVersions(clickhouse, finding, KNOWN_VERSIONS_MAX, signal)
    return { ...chosen, knownVersions: versions.map(versionDigest) }
  }
  if (status === 'open') return chosen
  const until = ignoreUntil === undefined ? {} : { until: rfc3339FromUnixMs(Date.parse(ignoreUntil)) }
  if (ignoreOccurrences === undefined) return { ...chosen, ...until }
  const today = [{ findingId: finding.findingId, day: dayOf(nowMs) }]
  const [counted] = await selectRecurrences(clickhouse, finding, today, signal)
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
    const finding = await loadExisting(deps, caller.workspaceId, param('findingId'), deadline)
    if (finding === undefined) return notFound(FINDINGS)
    const { text } = body
    const at = rfc3339FromUnixMs(deps.now())
    const entry: FindingEntry = { id: newId('act'), createdAt: at, by: actorOf(caller), action: 'commented', text }
    const change = (work: FindingWork) => ({ work, entries: [entry] })
    const once = onceOf(creation, () => ({ entry }))
    const changed = await commitChange(deps, finding, at, change, deadline, once)
    return changed.ok ? { ok: true, value: { entry } } : changed
  }
  return changeRoute(deps, commentFinding, commentFindingSchema, comment, createdReply)
}

/** Returns the route that lists what members have done with a finding, newest first (docs/api/findings.md#finding-work). */
function listFindingActivityRoute(deps: Deps): Route {
  const { directory } = deps
  return guardedRoute(deps, listFindingActivity, {
    resource: FINDINGS,
    query: pageQuerySchema,
    async run({ workspaceId, param, query, deadline }): Promise<Outcome<FindingActivityPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const finding = await loadExisting(deps, workspaceId, param('findingId'), deadline)
      if (finding === undefined) return notFound(FINDINGS)
      const found = await queryDirectory(directory.findingActivity(finding, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { activity: [...shown], nextCursor } }
    },
  })
}

/** Dependencies of every route that changes a finding. */
interface ChangeDeps extends ChangeRouteDeps, RoomDeps, StandingDeps {
  readonly directory: StandingDeps['directory'] & RoomDeps['directory'] & Pick<Directory, 'changeFinding' | 'member'>
}

const TOO_MANY_COMMENTS = invalid(
  `the comments and the other activity of a workspace can have at most ${ACTIVITY_BYTES_MAX} bytes`,
)

/** Changes a finding. If the workspace has too many records, room is made, and the change is tried again. */
async function commitChange(
  deps: ChangeDeps,
  finding: FindingOfWorkspace,
  at: string,
  change: (before: FindingWork) => ChangedWork,
  signal: AbortSignal,
  once?: Once,
): Promise<Outcome<FindingWork>> {
  const commit = () => queryDirectory(deps.directory.changeFinding(finding, at, change, once))
  let outcome = await commit()
  if (outcome === 'too_many_findings' && (await makeRoom(deps, finding.workspaceId, signal))) outcome = await commit()
  if (outcome === 'too_many_findings') return TOO_MANY_FINDINGS
  return outcome === 'too_many_comments' ? TOO_MANY_COMMENTS : { ok: true, value: outcome }
}
