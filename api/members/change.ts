import type { ListedMember } from '../../schemas/http/members.ts'
import type { Member, Permission } from '../../schemas/records/directory.ts'
import { MEMBERS_MAX } from '../../shared/directory/members/member-changes.ts'
import type { Caller } from '../auth/caller.ts'
import { invalid, type Refusal } from '../http/outcome.ts'
import { notFound, type Resource } from '../http/resource.ts'

/** The members of a workspace. */
export const MEMBER: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such member' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'members are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

const REFUSALS = {
  absent: notFound(MEMBER),
  exists: invalid('userId is a member with other permissions: change them with PATCH'),
  last_manager: invalid('the workspace must keep a member with the permission org:members:write'),
  too_many_members: invalid(`a workspace can have at most ${MEMBERS_MAX} members: remove members who left`),
} as const

/** Reasons why a member stays as it is. Permissions are those that the caller lacks. */
export type MemberFault = keyof typeof REFUSALS | { readonly lacking: readonly Permission[] }

/** Returns the refusal of a change. */
export function refuseMember(fault: MemberFault): Refusal {
  if (typeof fault === 'string') return REFUSALS[fault]
  const message = `you can only give and take permissions that you have yourself; you do not have ${fault.lacking.join(', ')}`
  return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
}

/** Returns the permissions that change and that the caller does not have. */
export function lackingFor(
  { permissions }: Pick<Caller, 'permissions'>,
  before: readonly Permission[],
  after: readonly Permission[],
): Permission[] {
  const changed = [...new Set([...before, ...after])].filter(
    permission => before.includes(permission) !== after.includes(permission),
  )
  return changed.filter(permission => !permissions.has(permission))
}

/** Returns a member as responses show it. */
export function presentMember({ userId, permissions, name, email, invitedAt }: Member): ListedMember {
  return {
    id: userId,
    permissions,
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    ...(invitedAt !== undefined && { invitedAt }),
  }
}
