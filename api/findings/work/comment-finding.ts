import { commentFinding } from '../../../schemas/http/findings/operations.ts'
import { type CommentCreated, commentFindingSchema } from '../../../schemas/http/findings/work.ts'
import type { FindingEntry } from '../../../schemas/records/change.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import { newId } from '../../../shared/directory/directory.ts'
import type { Route } from '../../../shared/http/route.ts'
import { actorOf } from '../../http/author-of.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'
import { createdReply, type Outcome } from '../../http/outcome.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import { type ChangeRequest, changeRoute } from './change-route.ts'
import { type ChangeDeps, commitChange, loadExisting, untouched } from './commit-change.ts'

/** Returns the route that comments on a finding (docs/api/findings.md#finding-work). */
export function commentFindingRoute(deps: ChangeDeps): Route {
  async function comment(request: ChangeRequest<{ text: string }>): Promise<Outcome<CommentCreated>> {
    const { caller, body, param, deadline } = request
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
    const changed = await commitChange(deps, finding, change, deadline)
    return changed.ok ? { ok: true, value: { entry } } : changed
  }
  return changeRoute(deps, commentFinding, commentFindingSchema, comment, createdReply)
}
