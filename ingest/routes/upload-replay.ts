import { SESSION_ID_MAX_CHARACTERS } from '../../schemas/http/fields.ts'
import { CHUNK_BYTES } from '../../schemas/http/limits.ts'
import { uploadReplay } from '../../schemas/http/replay.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { ReplayUpload } from '../../schemas/queues/jobs.ts'
import { contentEncodingOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import {
  type ANSWERED,
  type AnswerableRequest,
  type Decision,
  jsonReply,
  type Reply,
  type RequestCounter,
  type Route,
} from '../../shared/http/route.ts'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'
import { faultOfStart } from '../admission/chunk-start.ts'
import { decodeReplayMetadata, type MetadataFault } from '../admission/replay-metadata.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import { runtimeProblem, type SurfaceRouteDeps, withSurface } from './surface-route.ts'

interface Deps extends SurfaceRouteDeps {
  /** The sink of the queue `replay`. */
  readonly sink: Sink
  readonly counter: RequestCounter
  /** Called for a chunk that is acknowledged without a key and not kept. */
  readonly onReplayIgnored: (reason: MetadataFault) => void
  readonly now: () => number
}

const SESSION_ID_RULE = `sessionId must have 1 to ${SESSION_ID_MAX_CHARACTERS} characters in valid percent-encoding, and no control characters`

/** The facts that the head of an upload states. */
interface UploadHead {
  readonly sessionId: string
  readonly encodedMetadata: string | undefined
  readonly contentEncoding: string
  readonly contentLength: number | undefined
}

/** An upload that was admitted. */
interface Upload {
  readonly head: UploadHead
  readonly surface: SurfaceCaller
  readonly admitted: AdmittedRequest
}

/**
 * Accepts a chunk of a session's recording (docs/api/sessions.md#replay). Replies with the key that the chunk will have, once
 * the chunk is on disk in the queue. Reads its beginning only: the worker that stores it checks its content.
 */
export function uploadReplayRoute(deps: Deps): Route {
  const take = (surface: SurfaceCaller, head: UploadHead): Decision => {
    const admitted = deps.sink.admit(surface, head.contentLength, CHUNK_BYTES)
    if ('code' in admitted) return runtimeProblem(admitted)
    return (body, request) => takeChunk(deps, { head, surface, admitted }, body, request)
  }
  const taker = { take, counter: deps.counter }
  return operationRoute(uploadReplay, {
    renderProblem: runtimeProblem,
    accept(head, body) {
      const upload: UploadHead = {
        sessionId: head.param('sessionId'),
        // A beacon cannot set headers.
        encodedMetadata: head.header('x-replay-metadata') || head.query('metadata'),
        contentEncoding: contentEncodingOf(head),
        contentLength: head.contentLength,
      }
      return withSurface(deps, head, body, upload, taker)
    },
  })
}

function takeChunk(
  deps: Deps,
  { head, surface, admitted }: Upload,
  body: Buffer,
  request: AnswerableRequest,
): Reply | typeof ANSWERED {
  const { sessionId } = head
  if (!sessionIdSchema.safeParse(sessionId).success || /\p{Cc}/u.test(sessionId)) {
    return rejected(SESSION_ID_RULE)
  }
  const encoding = encodingOf(head.contentEncoding, body)
  if (!encoding.ok) return encoding.refusal
  if (body.length === 0) {
    return rejected('the body is empty: a chunk is JSON lines, gzipped or not')
  }
  const decoded = decodeReplayMetadata(head.encodedMetadata)
  if (!decoded.ok) {
    deps.onReplayIgnored(decoded.reason)
    return jsonReply({ objectKey: '' })
  }
  const fault = faultOfStart(body, encoding.encoding)
  if (fault !== undefined) return rejected(fault)
  const attributes: ReplayUpload = { sessionId, ...decoded.metadata }
  const frame = {
    ...surface,
    receivedAtMs: deps.now(),
    contentType: 'application/octet-stream',
    contentEncoding: encoding.encoding,
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const reply = jsonReply({ objectKey: replayKey({ ...surface, ...attributes }) })
  return admitted.accept(frame, reply, request)
}

/**
 * Returns the encoding of a chunk. A body that begins as gzip is gzip whatever the header, because a beacon cannot set
 * the header and no JSON begins so.
 */
function encodingOf(
  declared: string,
  body: Buffer,
): { ok: true; encoding: ContentEncoding } | { ok: false; refusal: Reply } {
  if (declared !== 'gzip' && declared !== 'identity') {
    const message = 'content-encoding must be absent or gzip'
    return { ok: false, refusal: runtimeProblem({ code: 'REQUEST_INVALID', status: 415, message }) }
  }
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  if (declared === 'gzip' && !isGzip) {
    return { ok: false, refusal: rejected('content-encoding is gzip, but the body does not begin as gzip does') }
  }
  return { ok: true, encoding: isGzip ? 'gzip' : 'identity' }
}

function rejected(message: string): Reply {
  return runtimeProblem({ code: 'REPLAY_UPLOAD_REJECTED', message })
}
