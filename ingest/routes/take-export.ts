import { EXPORT_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { Signal } from '../../schemas/queues/names.ts'
import type { BodyType } from '../../shared/http/body-type.ts'
import type { ANSWERED, AnswerableRequest, Reply, RequestCounter } from '../../shared/http/route.ts'
import { pageAttributes } from '../../shared/queue/page-request.ts'
import {
  CONTENT_ENCODINGS,
  type ContentEncoding,
  type ContentType,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import type { NumberedRequest } from '../admission/page-request.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import { formFault } from './export-form.ts'
import type { SurfaceRouteDeps, Taker } from './surface-route.ts'

/** Dependencies of OTLP exports, however they arrive. */
export interface ExportDeps extends SurfaceRouteDeps {
  /** The sink of each OTLP signal's queue. */
  readonly sinks: Readonly<Record<Signal, Sink>>
  readonly counterOf: (queue: Signal) => RequestCounter
  readonly now: () => number
}

/** The head of an export. */
export interface ExportHead extends BodyType {
  /** Absent where clients cannot number their requests. */
  readonly number?: NumberedRequest
}

type OtlpContentType = Exclude<ContentType, 'application/octet-stream'>

/** The empty Export…ServiceResponse, in the encoding of the request. */
const SUCCESS: Record<OtlpContentType, Reply> = {
  'application/x-protobuf': { status: 200, headers: [['content-type', 'application/x-protobuf']] },
  'application/json': { status: 200, headers: [['content-type', 'application/json']], body: '{}' },
}

/**
 * Returns how the exports of a signal are taken: without decoding them, and with a reply once they are on disk
 * (docs/api/otlp.md#drain). `render` renders their problems.
 */
export function exportTaker(deps: ExportDeps, signal: Signal, render: (problem: Problem) => Reply): Taker<ExportHead> {
  const sink = deps.sinks[signal]
  const { now } = deps
  return {
    counter: deps.counterOf(signal),
    renderProblem: render,
    take(surface, type) {
      const { number } = type
      if (number?.ok === false) return render(invalid(400, number.fault))
      const admitted = sink.admit(surface, type.contentLength, EXPORT_BYTES)
      if ('code' in admitted) return render(admitted)
      return (body, request) => {
        const taken = takeExport(admitted, surface, type, body, request, now)
        return typeof taken === 'object' && 'code' in taken ? render(taken) : taken
      }
    },
  }
}

function takeExport(
  admitted: AdmittedRequest,
  surface: SurfaceCaller,
  type: ExportHead,
  body: Buffer,
  request: AnswerableRequest,
  now: () => number,
): Reply | Problem | typeof ANSWERED {
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
    attributes: pageAttributes(type.number?.ok ? type.number.value : undefined),
    body,
  }
  return admitted.accept(frame, SUCCESS[contentType], request)
}

function parseContentEncoding(encoding: string): ContentEncoding | undefined {
  return encoding === 'identity' ? encoding : CONTENT_ENCODINGS.find(known => known === encoding)
}

function invalid(status: number, message: string): Problem {
  return { code: 'REQUEST_INVALID', status, message }
}
