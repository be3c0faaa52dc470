import { type IdentifySession, identifySessionSchema } from '../../schemas/http/sessions/identify-session.ts'
import { identifySession } from '../../schemas/http/sessions/operations.ts'
import type { Route } from '../../shared/http/route.ts'
import { memberText } from '../../shared/json/member-text.ts'
import type { IngestDeps } from '../routes.ts'
import { type MadeEvent, sessionRoute } from './sessions.ts'

/** Many readers of JSON recurse, and no attributes of a person are nested like this. */
const TRAITS_MAX_DEPTH = 100

/** POST /v3/session/identify (spec 4.1): who the user of a session is. */
export function identifySessionRoute(deps: IngestDeps): Route {
  return sessionRoute(deps, identifySession, identifySessionSchema(deps.identityProviders), identifyEvent)
}

function identifyEvent(request: IdentifySession, json: string): MadeEvent {
  const { deviceId, visitorId, fpHash, traits: given, ...rest } = request
  const traits = given && memberText(json, 'traits')
  if (traits && traits.depth > TRAITS_MAX_DEPTH) {
    return { ok: false, fault: `traits must not be nested more than ${TRAITS_MAX_DEPTH} deep` }
  }
  return {
    ok: true,
    event: {
      kind: 'identify',
      ...rest,
      // One name for absent and null: left out.
      ...(deviceId && { deviceId }),
      ...(visitorId && { visitorId }),
      ...(fpHash && { fpHash }),
      ...(traits && { traits: traits.text }),
    },
  }
}
