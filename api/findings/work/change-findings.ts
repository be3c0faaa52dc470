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
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import type { Route } from '../../../shared/http/route.ts'
import { actorOf, cutDirectoryPage, directoryPage, onceOf, queryDirectory, withOneMore } from '../../http/directory.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'
import { guardedRoute } from '../../http/guarded-route.ts'
import { createdReply, invalid, type Outcome, okReply } from '../../http/outcome.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import {
  type ChangeRequest,
  type ChangeRouteDeps,
  changeRoute,
  loadExisting,
  presentWithStanding,
} from './change-route.ts'
import { type CommitDeps, commitChange, newStatus, withStatus } from './commit-change.ts'
import type { StandingDeps } from './load-standings.ts'

interface Deps extends ChangeRouteDeps, CommitDeps, StandingDeps {
  readonly directory: CommitDeps['directory'] &
    StandingDeps['directory'] &
    Pick<Directory, 'findingActivity' | 'member'>
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
    const status =
      body.status && (await newStatus(clickhouse, finding, { ...body, status: body.status }, nowMs, deadline))
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
