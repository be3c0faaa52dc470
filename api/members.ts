import { z } from 'zod'
import {
  addMember,
  addMemberSchema,
  changeMember,
  changeMemberSchema,
  type ListedMember,
  listMembers,
  type MemberAnswer,
  type MemberRemoved,
  type MembersPage,
  removeMember,
  removeMemberQuerySchema,
} from '../schemas/http/members.ts'
import { pageQuerySchema } from '../schemas/http/page.ts'
import type { Member, Permission } from '../schemas/records/directory.ts'
import type { Directory } from '../shared/directory/directory.ts'
import { MEMBERS_MAX, type MemberDecision } from '../shared/directory/members/member-changes.ts'
import type { KeysOutcome } from '../shared/directory/members/member-keys.ts'
import type { Route } from '../shared/http/route.ts'
import type { Caller } from './auth/caller.ts'
import { type CreationRouteDeps, creationRoute } from './http/creation-route.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor } from './http/cursor.ts'
import { authorOf, onceOf, queryDirectory } from './http/directory.ts'
import { rfc3339FromUnixMs } from './http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome, okReply, type Refusal } from './http/outcome.ts'
import { notFound, type Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'members' | 'changeMember'>
}

/** Returns the routes of the members of a workspace (docs/api/workspaces.md#members). */
export function memberRoutes(deps: Deps): Route[] {
  return [listMembersRoute(deps), addMemberRoute(deps), changeMemberRoute(deps), removeMemberRoute(deps)]
}

const cursorSchema = z.tuple([z.string().max(20)])

/**
 * Returns the route that lists members (docs/api/workspaces.md#members). They are ordered by a digest of their ids, because a
 * cursor has no room for an id, and must not get lost with the member at which a page ends.
 */
function listMembersRoute(deps: Deps): Route {
  return guardedRoute(deps, listMembers, {
    resource: MEMBER,
    query: pageQuerySchema,
    async run({ workspaceId, query: { limit, cursor } }): Promise<Outcome<MembersPage>> {
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      const all = await queryDirectory(allMembers(deps, workspaceId))
      const from = after.value?.[0] ?? ''
      const found = all.filter(({ place }) => place > from).slice(0, limit + 1)
      const { shown, nextCursor } = cutPage(found, limit, ({ place }) => encodeCursor([place]))
      return { ok: true, value: { members: shown.map(({ member }) => presentMember(member)), nextCursor } }
    },
  })
}

async function allMembers({ directory }: Deps, workspaceId: string) {
  const all: { place: string; member: Member }[] = []
  for await (const member of directory.members(workspaceId)) all.push({ place: digestOf([member.userId]), member })
  return all.sort((a, b) => (a.place < b.place ? -1 : 1))
}

type Refused = MemberFault | { readonly same: Member }

/** Returns the route that adds a member by identity (docs/api/workspaces.md#members). */
function addMemberRoute(deps: Deps): Route {
  return creationRoute(deps, addMember, {
    resource: MEMBER,
    body: addMemberSchema,
    async create({ caller, body, creation }): Promise<Outcome<MemberAnswer>> {
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
          // A key that was made while its maker was removed would work again.
          const change = { action: 'member.added', subject: userId, permissions, ...(name && { name }) } as const
          return { to: member, change, keys: { are: 'revoked' } }
        }
        const isSame =
          before.permissions.length === permissions.length &&
          lackingFor(NONE, before.permissions, permissions).length === 0
        return { refused: isSame ? { same: before } : 'exists' }
      }
      const value = { member: presentMember(member) }
      const author = authorOf(
        caller,
        nowMs,
        onceOf(creation, () => value),
      )
      const outcome = await queryDirectory(deps.directory.changeMember(member, decide, author))
      if (typeof outcome === 'object' && 'keys' in outcome) return { ok: true, value }
      if (typeof outcome === 'object' && 'same' in outcome) {
        return { ok: true, value: { member: presentMember(outcome.same) } }
      }
      return refuseMember(outcome)
    },
  })
}

/** A caller without permissions: everything that differs is lacking. */
const NONE = { permissions: new Set<never>() }

/** Returns the route that replaces the permissions of a member (docs/api/workspaces.md#members). */
function changeMemberRoute(deps: Deps): Route {
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
        const lacking = lackingToChange(caller, before, permissions)
        if (lacking.length > 0) return { refused: { lacking } }
        member = { ...before, permissions }
        return { to: member, change: { action: 'member.changed', subject: userId, permissions } }
      }
      const author = authorOf(caller, deps.now())
      const outcome = await queryDirectory(deps.directory.changeMember({ workspaceId, userId }, decide, author))
      if (typeof outcome === 'string' || 'lacking' in outcome) return refuseMember(outcome)
      return member ? { ok: true, value: { member: presentMember(member) } } : refuseMember('absent')
    },
  })
}

/** Returns the route that removes a member (docs/api/workspaces.md#members). */
function removeMemberRoute(deps: Deps): Route {
  return guardedRoute(deps, removeMember, {
    resource: MEMBER,
    query: removeMemberQuerySchema,
    async run({ caller, workspaceId, param, query }): Promise<Outcome<MemberRemoved>> {
      const userId = param('userId')
      const decide = (before: Member | undefined): MemberDecision<MemberFault> => {
        if (before === undefined) return { refused: 'absent' }
        const lacking = lackingFor(caller, before.permissions, [])
        if (lacking.length > 0) return { refused: { lacking } }
        // Who removes itself can pass keys to no one.
        const isPassed = query.keys === 'pass' && caller.userId !== userId
        const keys: KeysOutcome = isPassed
          ? { are: 'passed', to: caller.userId, permissions: before.permissions }
          : { are: 'revoked' }
        return { to: undefined, change: { action: 'member.removed', subject: userId }, keys }
      }
      const author = authorOf(caller, deps.now())
      const outcome = await queryDirectory(deps.directory.changeMember({ workspaceId, userId }, decide, author))
      if (typeof outcome === 'string' || 'lacking' in outcome) return refuseMember(outcome)
      return { ok: true, value: { ok: true, keys: [...outcome.keys] } }
    },
  })
}

/** The members of a workspace. */
const MEMBER: Resource = {
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
type MemberFault = keyof typeof REFUSALS | { readonly lacking: readonly Permission[] }

/** Returns the refusal of a change. */
function refuseMember(fault: MemberFault): Refusal {
  if (typeof fault === 'string') return REFUSALS[fault]
  const message = `you can only give and take permissions that you have yourself; you do not have ${fault.lacking.join(', ')}`
  return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
}

/** Returns the permissions that change and that the caller does not have. */
function lackingFor(
  { permissions }: Pick<Caller, 'permissions'>,
  before: readonly Permission[],
  after: readonly Permission[],
): Permission[] {
  const changed = [...new Set([...before, ...after])].filter(
    permission => before.includes(permission) !== after.includes(permission),
  )
  return changed.filter(permission => !permissions.has(permission))
}

/**
 * Returns the permissions that the caller lacks to give a member other ones. Who takes a permission from another member must have
 * all that the member has, as for removing him: else a lesser manager could take the workspace away from a greater one.
 */
function lackingToChange(
  { userId, permissions }: Caller,
  before: Pick<Member, 'userId' | 'permissions'>,
  after: readonly Permission[],
): Permission[] {
  const isTaken = before.permissions.some(permission => !after.includes(permission))
  if (!isTaken || before.userId === userId) return lackingFor({ permissions }, before.permissions, after)
  return [...new Set([...before.permissions, ...after])].filter(permission => !permissions.has(permission))
}

/** Returns a member as responses show it. */
function presentMember({ userId, permissions, name, email, invitedAt }: Member): ListedMember {
  return {
    id: userId,
    permissions,
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    ...(invitedAt !== undefined && { invitedAt }),
  }
}
