import { heartbeat } from '../../schemas/http/sessions/operations.ts'
import { heartbeatSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import type { IngestDeps } from '../routes.ts'
import { sessionRoute } from './sessions.ts'

/** POST /v3/session (spec 4.2): a device of a session is alive. */
export function heartbeatRoute(deps: IngestDeps): Route {
  return sessionRoute(deps, heartbeat, heartbeatSchema, event => ({
    ok: true,
    event: { kind: 'heartbeat', ...event },
  }))
}
