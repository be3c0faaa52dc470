import { addMember, addMemberSchema, type MemberAnswer } from '../../schemas/http/members.ts'
import type { Member } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { MemberDecision } from '../../shared/directory/members/member-changes.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { lackingFor, MEMBER, type MemberFault, presentMember, refuseMember } from './change.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'changeMember'>
  readonly now: () => number
}

type Refused = MemberFault | { readonly same: Member }

/** Returns the route that adds a member by identity (docs/api/workspaces.md#members). */
export function addMemberRoute(deps: Deps): Route {
  return creationRoute(deps, addMember, {
    resource: MEMBER,
    body: addMemberSchema,
    async create({ caller, body }): Promise<Outcome<MemberAnswer>> {
      const { workspaceId } = caller
      const { userId, name, email } = body
      const nowMs = deps.now()
      const permissions = [...new Set(body.permissions)]
      const more = { ...(name !== undefined && { name }), ...(email !== undefined && { email }) }
      const member: Member = {
        ...{ version: 1, workspaceId, userId, permissions, ...more },
        invitedAt: rfc3339FromUnixMs(nowMs),
      }
      const decide = (before: Member | undefined): MemberDecision<Refused> => {
        const lacking = lackingFor(caller, [], permissions)
        if (lacking.length > 0) return { refused: { lacking } }
        if (before === undefined) {
          return { to: member, change: { action: 'member.added', subject: userId, permissions, ...(name && { name }) } }
        }
        const isSame =
          before.permissions.length === permissions.length &&
          lackingFor(NONE, before.permissions, permissions).length === 0
        return { refused: isSame ? { same: before } : 'exists' }
      }
      const outcome = await queryDirectory(deps.directory.changeMember(member, decide, authorOf(caller, nowMs)))
      if (outcome === 'changed') return { ok: true, value: { member: presentMember(member) } }
      if (typeof outcome === 'object' && 'same' in outcome) {
        return { ok: true, value: { member: presentMember(outcome.same) } }
      }
      return refuseMember(outcome)
    },
  })
}

/** A caller without permissions: everything that differs is lacking. */
const NONE = { permissions: new Set<never>() }
