import { z } from 'zod'
import { listMembers, type MembersPage } from '../../schemas/http/members.ts'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { Member } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { MEMBER, presentMember } from './change.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'members'>
}

const cursorSchema = z.tuple([z.string().max(20)])

/**
 * Returns the route that lists members (docs/api/workspaces.md#members). They are ordered by a digest of their ids, because a
 * cursor has no room for an id, and must not get lost with the member at which a page ends.
 */
export function listMembersRoute(deps: Deps): Route {
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
