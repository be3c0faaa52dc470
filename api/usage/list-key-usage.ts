import { z } from 'zod'
import { type KeyUsageAnswer, keyUsageQuerySchema, listKeyUsage } from '../../schemas/http/usage.ts'
import type { Route } from '../../shared/http/route.ts'
import type { KeyUsage } from '../../shared/queue/key-usage.ts'
import { cutPage, decodeCursor, encodeCursor } from '../http/cursor.ts'
import { dayOf, dayText } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { USAGE } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly keyUsage: (workspaceId: string, day: number) => Promise<KeyUsage[]>
  readonly now: () => number
}

const cursorSchema = z.tuple([z.string().regex(/^key_[0-9a-z]{1,64}$/)])

/** Returns the route that lists the requests of the public keys of a workspace on a day (docs/api/workspaces.md#usage). */
export function listKeyUsageRoute(deps: Deps): Route {
  return guardedRoute(deps, listKeyUsage, {
    resource: USAGE,
    query: keyUsageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<KeyUsageAnswer>> {
      const { limit, cursor } = query
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      const day = dayOf(query.day ?? deps.now())
      const all = await queryDirectory(deps.keyUsage(workspaceId, day))
      const from = after.value?.[0] ?? ''
      const found = all.filter(({ keyId }) => keyId > from).slice(0, limit + 1)
      const { shown, nextCursor } = cutPage(found, limit, ({ keyId }) => encodeCursor([keyId]))
      const keys = shown.map(({ keyId: id, requests, bytes }) => ({ id, requests, bytes }))
      return { ok: true, value: { day: dayText(day), keys, nextCursor } }
    },
  })
}
