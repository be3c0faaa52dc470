import { removeMember } from '../../schemas/http/members.ts'
import type { Member } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { MemberDecision } from '../../shared/directory/members/member-changes.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { lackingFor, MEMBER, type MemberFault, refuseMember } from './change.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'changeMember'>
  readonly now: () => number
}

/** Returns the route that removes a member (docs/api/workspaces.md#members). */
export function removeMemberRoute(deps: Deps): Route {
  return guardedRoute(deps, removeMember, {
    resource: MEMBER,
    async run({ caller, workspaceId, param }): Promise<Outcome<{ ok: true }>> {
      const userId = param('userId')
      const decide = (before: Member | undefined): MemberDecision<MemberFault> => {
        if (before === undefined) return { refused: 'absent' }
        const lacking = lackingFor(caller, before.permissions, [])
        if (lacking.length > 0) return { refused: { lacking } }
        return { to: undefined, change: { action: 'member.removed', subject: userId } }
      }
      const author = authorOf(caller, deps.now())
      const outcome = await queryDirectory(deps.directory.changeMember({ workspaceId, userId }, decide, author))
      return outcome === 'changed' ? { ok: true, value: { ok: true } } : refuseMember(outcome)
    },
  })
}
