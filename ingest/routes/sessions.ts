import type { z } from 'zod'
import { SMALL_BODY_BYTES } from '../../schemas/http/limits.ts'
import type { RoutedOperation } from '../../schemas/http/operation.ts'
import { type IdentifySession, identifySessionSchema } from '../../schemas/http/sessions/identify-session.ts'
import { heartbeat, identifySession } from '../../schemas/http/sessions/operations.ts'
import type { PageRequest } from '../../schemas/http/sessions/page-request.ts'
import { heartbeatSchema } from '../../schemas/http/sessions/schemas.ts'
import type { SessionEvent } from '../../schemas/queues/jobs.ts'
import { type BodyType, bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseOptionalFields } from '../../shared/http/parse-json-body.ts'
import {
  type ANSWERED,
  type AnswerableRequest,
  type BodyHandler,
  type Decision,
  jsonReply,
  type RequestCounter,
  type Route,
} from '../../shared/http/route.ts'
import { memberText } from '../../shared/json/member-text.ts'
import { pageAttributes } from '../../shared/queue/page-request.ts'
import { type NumberedRequest, numberOfRequest } from '../admission/page-request.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import { runtimeProblem, type SurfaceRouteDeps, withSurface } from './surface-route.ts'

interface Deps extends SurfaceRouteDeps {
  /** The sink of the queue `sessions`. */
  readonly sink: Sink
  readonly counter: RequestCounter
  readonly now: () => number
}

/** The head of a request about a session. */
interface SessionHead {
  readonly type: BodyType
  readonly number: NumberedRequest
}

/** The sender of a valid request. */
interface Sender {
  readonly surface: SurfaceCaller
  readonly number: PageRequest | undefined
}

/** Makes an event of the valid body of a request and of the body's JSON text. Adds the faults of what it leaves out. */
type MakeEvent<T> = (body: T, json: string, leftOut: string[]) => SessionEvent

/** Many JSON parsers recurse. No real traits are nested as deep as this. */
const TRAITS_MAX_DEPTH = 100

/** The content types of JSON bodies. Beacons can only send text/plain, or none with the bytes of a blob. */
const MEDIA_TYPES = ['application/json', 'text/plain', undefined]

const SUCCESS = jsonReply({ ok: true })

/** Records that a device of a session is alive (docs/api/sessions.md#heartbeat). */
export function heartbeatRoute(deps: Deps): Route {
  return sessionRoute(deps, heartbeat, heartbeatSchema, ({ sessionId, ...device }) => ({
    kind: 'heartbeat',
    sessionId,
    ...presentDevice(device),
  }))
}

/** Records who the user of a session is (docs/api/sessions.md#identify). */
export function identifySessionRoute(deps: Deps & { readonly identityProviders: readonly string[] }): Route {
  return sessionRoute(deps, identifySession, identifySessionSchema(deps.identityProviders), identifyEvent)
}

function identifyEvent(request: IdentifySession, json: string, leftOut: string[]): SessionEvent {
  const { deviceId, visitorId, fpHash, traits: given, ...rest } = request
  const traits = given && memberText(json, 'traits')
  const isDeep = traits !== undefined && traits.depth > TRAITS_MAX_DEPTH
  if (isDeep) leftOut.push(`traits must not be nested more than ${TRAITS_MAX_DEPTH} deep`)
  return {
    kind: 'identify',
    ...rest,
    ...presentDevice({ deviceId, visitorId, fpHash }),
    ...(traits && !isDeep && { traits: traits.text }),
  }
}

/** Leaves out what is absent or null, which mean the same. */
function presentDevice({ deviceId, visitorId, fpHash }: Pick<IdentifySession, 'deviceId' | 'visitorId' | 'fpHash'>) {
  return { ...(deviceId && { deviceId }), ...(visitorId && { visitorId }), ...(fpHash && { fpHash }) }
}

/** Returns the route of an operation whose body is one JSON object about a session. */
function sessionRoute<S extends z.ZodObject>(
  deps: Deps,
  operation: RoutedOperation,
  schema: S,
  makeEvent: MakeEvent<z.infer<S>>,
): Route {
  const takeBody =
    (admitted: AdmittedRequest, sender: Sender, type: BodyType): BodyHandler =>
    (body, request) => {
      const problem = bodyTypeFault(type, MEDIA_TYPES)
      if (problem) return runtimeProblem(problem)
      const parsed = parseOptionalFields(schema, body)
      if (!parsed.ok) return runtimeProblem({ code: 'REQUEST_INVALID', message: parsed.fault })
      const { leftOut = [] } = parsed
      const event = makeEvent(parsed.value, parsed.json, leftOut)
      return acceptEvent(deps, admitted, sender, leftOut.length > 0 ? { ...event, leftOut } : event, request)
    }
  const take = (surface: SurfaceCaller, { type, number }: SessionHead): Decision => {
    if (number?.ok === false) return runtimeProblem({ code: 'REQUEST_INVALID', message: number.fault })
    const admitted = deps.sink.admit(surface, type.contentLength, SMALL_BODY_BYTES)
    return 'code' in admitted ? runtimeProblem(admitted) : takeBody(admitted, { surface, number: number?.value }, type)
  }
  const taker = { take, counter: deps.counter }
  return operationRoute(operation, {
    renderProblem: runtimeProblem,
    accept: (head, body) =>
      withSurface(deps, head, body, { type: bodyTypeOf(head), number: numberOfRequest(head) }, taker),
  })
}

function acceptEvent(
  deps: Deps,
  admitted: AdmittedRequest,
  { surface, number }: Sender,
  event: SessionEvent,
  request: AnswerableRequest,
): typeof ANSWERED {
  const frame = {
    ...surface,
    receivedAtMs: deps.now(),
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: pageAttributes(number),
    body: Buffer.from(JSON.stringify(event)),
  } as const
  return admitted.accept(frame, SUCCESS, request)
}
