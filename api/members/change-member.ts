import { changeMember, changeMemberSchema, type MemberAnswer } from '../../schemas/http/members.ts'
import type { Member } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { MemberDecision } from '../../shared/directory/members/member-changes.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { type Outcome, okReply } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { lackingFor, MEMBER, type MemberFault, presentMember, refuseMember } from './change.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'changeMember'>
  readonly now: () => number
}

/** Returns the route that replaces the permissions of a member (docs/api/workspaces.md#members). */
export function changeMemberRoute(deps: Deps): Route {
  return creationRoute(deps, changeMember, {
    resource: MEMBER,
    body: changeMemberSchema,
    reply: okReply,
    async create({ caller, body, param }): Promise<Outcome<MemberAnswer>> {
      const { workspaceId } = caller
      const userId = param('userId')
      const permissions = [...new Set(body.permissions)]
      let member: Member | undefined
      const decide = (before: Member | undefined): MemberDecision<MemberFault> => {
        if (before === undefined) return { refused: 'absent' }
        const lacking = lackingFor(caller, before.permissions, permissions)
        if (lacking.length > 0) return { refused: { lacking } }
        member = { ...before, permissions }
        return { to: member, change: { action: 'member.changed', subject: userId, permissions } }
      }
      const author = authorOf(caller, deps.now())
      const outcome = await queryDirectory(deps.directory.changeMember({ workspaceId, userId }, decide, author))
      if (outcome !== 'changed') return refuseMember(outcome)
      return member ? { ok: true, value: { member: presentMember(member) } } : refuseMember('absent')
    },
  })
}
