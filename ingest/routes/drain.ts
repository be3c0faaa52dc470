import type { Problem } from '../../schemas/http/problems.ts'
import { PROBLEMS } from '../../schemas/http/problems.ts'
import { SIGNAL_QUEUES, type SignalQueue } from '../../schemas/queues/names.ts'
import type { Decision, Reply, Route } from '../../shared/http/server.ts'
import {
  CONTENT_ENCODINGS,
  type ContentEncoding,
  type ContentType,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import { isProtobufMessage } from '../admission/protobuf-framing.ts'
import type { Authentication, SurfaceCaller } from '../auth/authenticate-surface.ts'
import { acceptFrame } from '../commit/frame-sink.ts'
import type { IngestDeps } from '../routes.ts'
import { presentedKey } from './surface-route.ts'

const BODY_LIMIT_BYTES = 20 * 1024 * 1024

const QUEUES: ReadonlyMap<string, SignalQueue> = new Map(Object.entries(SIGNAL_QUEUES))

/** The empty Export…ServiceResponse, in each encoding of a request. */
const SUCCESS: Record<OtlpContentType, Reply> = {
  'application/x-protobuf': { status: 200, headers: [['content-type', 'application/x-protobuf']] },
  'application/json': { status: 200, headers: [['content-type', 'application/json']], body: '{}' },
}

type OtlpContentType = Exclude<ContentType, 'application/octet-stream'>

/** POST /drain/v1/{signal} (spec 4.4): authenticates, checks the outer form, and answers once the body is on disk. */
export function drainRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/drain/v1/:signal',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    cors: true,
    overLimit: {
      code: 'REQUEST_INVALID',
      status: 413,
      message: 'the body is over the limit of 20 MiB; export smaller batches',
    },
    renderProblem: drainProblem,
    accept(head) {
      const queue = QUEUES.get(head.param('signal'))
      if (queue === undefined) {
        return drainProblem({ code: 'NOT_FOUND', message: `signal must be one of: ${[...QUEUES.keys()].join(', ')}` })
      }
      const request = {
        queue,
        contentType: head.header('content-type'),
        contentEncoding: head.header('content-encoding'),
      }
      const authentication = deps.authenticator.authenticate(presentedKey(head))
      return authentication instanceof Promise
        ? authentication.then(settled => decide(deps, request, settled))
        : decide(deps, request, authentication)
    },
  }
}

/** What the head of a request says of its body. */
interface Announced {
  readonly queue: SignalQueue
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
}

/** A function of its own, not one inside `accept`: this runs for every request. */
function decide(deps: IngestDeps, announced: Announced, authentication: Authentication): Decision {
  if (!authentication.ok) return drainProblem(authentication.problem)
  const { surface } = authentication
  return body => takeBody(deps, announced, surface, body)
}

function takeBody(
  deps: IngestDeps,
  announced: Announced,
  surface: SurfaceCaller,
  body: Buffer,
): Reply | Promise<Reply> {
  const { queue } = announced
  const backpressure = deps.admission.refuse(queue)
  if (backpressure) return drainProblem(backpressure)
  const contentType = parseContentType(announced.contentType)
  if (contentType === undefined) {
    return invalid(415, 'content-type must be application/x-protobuf or application/json')
  }
  const contentEncoding = parseContentEncoding(announced.contentEncoding)
  if (contentEncoding === undefined) {
    return invalid(415, `content-encoding must be absent or one of: ${CONTENT_ENCODINGS.slice(1).join(', ')}`)
  }
  if (body.length === 0 && contentType === 'application/x-protobuf') return SUCCESS[contentType] // an export of nothing
  const fault = contentEncoding === 'identity' ? formFault(contentType, body) : undefined
  if (fault !== undefined) return invalid(400, fault)
  const frame: PayloadFrame = {
    ...surface,
    receivedAtMs: deps.now(),
    contentType,
    contentEncoding,
    attributes: '',
    body,
  }
  return acceptFrame(deps, queue, frame, SUCCESS[contentType], drainProblem)
}

/** What can be seen to be wrong without decoding; a worker finds the rest. */
function formFault(contentType: OtlpContentType, body: Buffer): string | undefined {
  if (contentType === 'application/json') {
    return startsJsonObject(body) ? undefined : 'the body is not a JSON object: it must begin with {'
  }
  return isProtobufMessage(body)
    ? undefined
    : 'the body is not a protobuf message: a field is cut short or its tag is invalid'
}

function startsJsonObject(body: Buffer): boolean {
  for (const byte of body) {
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b
  }
  return false
}

function parseContentType(header: string | undefined): OtlpContentType | undefined {
  if (header === 'application/x-protobuf' || header === 'application/json') return header
  const mediaType = header?.split(';', 1)[0]?.trim().toLowerCase()
  return mediaType === 'application/x-protobuf' || mediaType === 'application/json' ? mediaType : undefined
}

function parseContentEncoding(header: string | undefined): ContentEncoding | undefined {
  if (header === undefined || header === '') return 'identity'
  const encoding = header.trim().toLowerCase()
  return CONTENT_ENCODINGS.find(known => known === encoding)
}

function invalid(status: number, message: string): Reply {
  return drainProblem({ code: 'REQUEST_INVALID', status, message })
}

/** The problem body of this endpoint has no `service`, and a `code` only for the two that a client may wait out. */
function drainProblem(problem: Problem): Reply {
  const withCode = problem.code === 'INGEST_INFRA_UNAVAILABLE' || problem.code === 'INGEST_BACKPRESSURE'
  const headers: [string, string][] = [['content-type', 'application/json']]
  if (problem.retryAfterSeconds !== undefined) headers.push(['retry-after', String(problem.retryAfterSeconds)])
  return {
    status: problem.status ?? PROBLEMS[problem.code].status,
    headers,
    body: JSON.stringify(withCode ? { code: problem.code, message: problem.message } : { message: problem.message }),
  }
}
