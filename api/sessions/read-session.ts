import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { readSession } from '../../schemas/http/sessions/operations.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { stringifyWithTexts } from '../../shared/json/json-text.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { type Outcome, okJson } from '../http/outcome.ts'
import { notFound, SESSIONS } from '../http/resource.ts'
import { loadSession, type PresentedSession } from './load-session.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
}

/**
 * Returns the route that reads one session: its identities, devices, traces, findings and replay
 * (docs/api/sessions.md#sessions).
 */
export function readSessionRoute(deps: Deps): Route {
  return guardedRoute(deps, readSession, {
    resource: SESSIONS,
    reply: answer => okJson(stringifyWithTexts(answer)),
    async run({ workspaceId, param, deadline }): Promise<Outcome<{ session: PresentedSession }>> {
      const sessionId = param('sessionId')
      if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
      const session = await loadSession(deps.clickhouse, { workspaceId, sessionId }, deadline)
      return session === undefined ? notFound(SESSIONS) : { ok: true, value: { session } }
    },
  })
}
