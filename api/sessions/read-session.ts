import { readSession } from '../../schemas/http/sessions/operations.ts'
import type { SessionAnswer } from '../../schemas/http/sessions/schemas.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import type { Route } from '../../shared/http/route.ts'
import { guardedRead, SESSIONS_GUARD, sessionNotFound } from '../http/guarded-read.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { loadSession } from './load-session.ts'

/** What is known of one session: who it is of, on which devices, its traces, findings and replay. */
export function readSessionRoute(deps: ApiDeps): Route {
  return operationRoute(readSession, {
    accept(head) {
      const sessionId = head.param('sessionId')
      const read = async (workspaceId: string, signal: AbortSignal): Promise<Outcome<SessionAnswer>> => {
        if (!sessionIdSchema.safeParse(sessionId).success) return sessionNotFound
        const session = await loadSession(deps.clickhouse, { workspaceId, sessionId }, signal)
        return session === undefined ? sessionNotFound : { ok: true, value: { session } }
      }
      return guardedRead(deps, head.header('authorization'), SESSIONS_GUARD, read)
    },
  })
}
