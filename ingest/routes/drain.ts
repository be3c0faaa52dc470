import { EXPORT_BYTES } from '../../schemas/http/limits.ts'
import { PROBLEMS, type Problem } from '../../schemas/http/problems.ts'
import { drain } from '../../schemas/http/telemetry.ts'
import { SIGNALS, type Signal } from '../../schemas/queues/names.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import {
  type ANSWERED,
  type AnswerableRequest,
  problemHeaders,
  type Reply,
  type RequestCounter,
  type Route,
} from '../../shared/http/route.ts'
import {
  CONTENT_ENCODINGS,
  type ContentEncoding,
  type ContentType,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import { formFault } from './export-form.ts'
import { type SurfaceRouteDeps, type Taker, withSurface } from './surface-route.ts'

interface Deps extends SurfaceRouteDeps {
  /** The sink of each OTLP signal's queue. */
  readonly sinks: Readonly<Record<Signal, Sink>>
  readonly counterOf: (queue: Signal) => RequestCounter
  readonly now: () => number
}

type OtlpContentType = Exclude<ContentType, 'application/octet-stream'>

/** The empty Export…ServiceResponse, in the encoding of the request. */
const SUCCESS: Record<OtlpContentType, Reply> = {
  'application/x-protobuf': { status: 200, headers: [['content-type', 'application/x-protobuf']] },
  'application/json': { status: 200, headers: [['content-type', 'application/json']], body: '{}' },
}

/** Accepts OTLP exports without decoding them, and replies once they are on disk (docs/api/otlp.md#drain). */
export function drainRoute(deps: Deps): Route {
  const signals = new Map<string, Taker<BodyType>>()
  for (const signal of SIGNALS) {
    const sink = deps.sinks[signal]
    signals.set(signal, {
      counter: deps.counterOf(signal),
      renderProblem: drainProblem,
      take(surface, type) {
        const admitted = sink.admit(surface, type.contentLength, EXPORT_BYTES)
        if ('code' in admitted) return drainProblem(admitted)
        return (body, request) => takeExport(admitted, surface, type, body, request, deps.now)
      },
    })
  }
  const unknownSignal: Problem = {
    code: 'NOT_FOUND',
    message: `signal must be one of: ${[...signals.keys()].join(', ')}`,
  }
  return operationRoute(drain, {
    renderProblem: drainProblem,
    accept(head, body) {
      const taker = signals.get(head.param('signal'))
      if (taker === undefined) return drainProblem(unknownSignal)
      return withSurface(deps, head, body, bodyTypeOf(head), taker)
    },
  })
}

function takeExport(
  admitted: AdmittedRequest,
  surface: SurfaceCaller,
  type: BodyType,
  body: Buffer,
  request: AnswerableRequest,
  now: () => number,
): Reply | typeof ANSWERED {
  const contentType = type.mediaType
  if (contentType !== 'application/x-protobuf' && contentType !== 'application/json') {
    return invalid(415, 'content-type must be application/x-protobuf or application/json')
  }
  const contentEncoding = parseContentEncoding(type.contentEncoding)
  if (contentEncoding === undefined) {
    return invalid(415, `content-encoding must be absent or one of: ${CONTENT_ENCODINGS.slice(1).join(', ')}`)
  }
  // An empty protobuf body is a valid export of nothing.
  if (body.length === 0 && contentType === 'application/x-protobuf') return SUCCESS[contentType]
  const fault = formFault(contentType === 'application/json', contentEncoding, body)
  if (fault !== undefined) return invalid(400, fault)
  const frame: PayloadFrame = {
    ...surface,
    receivedAtMs: now(),
    contentType,
    contentEncoding,
    attributes: '',
    body,
  }
  return admitted.accept(frame, SUCCESS[contentType], request)
}

function parseContentEncoding(encoding: string): ContentEncoding | undefined {
  return encoding === 'identity' ? encoding : CONTENT_ENCODINGS.find(known => known === encoding)
}

function invalid(status: number, message: string): Reply {
  return drainProblem({ code: 'REQUEST_INVALID', status, message })
}

/** Renders a problem without `service`, and with `code` only for the two problems that a client retries. */
function drainProblem(problem: Problem): Reply {
  const withCode = problem.code === 'INGEST_INFRA_UNAVAILABLE' || problem.code === 'INGEST_BACKPRESSURE'
  return {
    status: problem.status ?? PROBLEMS[problem.code].status,
    headers: problemHeaders(problem),
    body: JSON.stringify(withCode ? { code: problem.code, message: problem.message } : { message: problem.message }),
  }
}
