import type { Problem } from '../../schemas/http/problems.ts'
import { SESSION_ID_MAX_CHARACTERS, sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { ReplayUpload } from '../../schemas/queues/jobs.ts'
import type { BodyHandler, Reply, Route } from '../../shared/http/route.ts'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'
import { decodeReplayMetadata } from '../admission/replay-metadata.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import { acceptFrame } from '../commit/frame-sink.ts'
import type { IngestDeps } from '../routes.ts'
import { jsonReply, runtimeProblem, withSurface } from './surface-route.ts'

const BODY_LIMIT_BYTES = 10 * 1024 * 1024

interface UploadHead {
  readonly sessionId: string
  readonly encodedMetadata: string | undefined
  readonly contentEncoding: string | undefined
}

/**
 * POST /v3/replay/upload/{sessionId} (spec 4.3): answers with the key that the chunk will have as soon as it is on disk
 * in the queue. Nothing is inflated here: what a chunk holds is checked by the worker that stores it.
 */
export function uploadReplayRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/v3/replay/upload/:sessionId',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    cors: true,
    overLimit: { code: 'REPLAY_UPLOAD_REJECTED', status: 413, message: 'the body is over the limit of 10 MiB' },
    renderProblem: replayProblem,
    accept(head) {
      const upload: UploadHead = {
        sessionId: head.param('sessionId'),
        // A beacon has no headers of its own.
        encodedMetadata: head.header('x-replay-metadata') || head.query('metadata'),
        contentEncoding: head.header('content-encoding'),
      }
      return withSurface(deps, head, surface => takeChunk(deps, surface, upload))
    },
  }
}

function takeChunk(deps: IngestDeps, surface: SurfaceCaller, head: UploadHead): BodyHandler {
  return body => {
    const backpressure = deps.admission.refuse('replay')
    if (backpressure) return replayProblem(backpressure)
    const { sessionId } = head
    if (!sessionIdSchema.safeParse(sessionId).success || /\p{Cc}/u.test(sessionId)) {
      return rejected(`sessionId must have 1 to ${SESSION_ID_MAX_CHARACTERS} characters, and no control characters`)
    }
    const encoding = encodingOf(head.contentEncoding, body)
    if (!encoding.ok) return encoding.refusal
    if (body.length === 0) return rejected('the body is empty: a chunk is JSON lines, gzipped or not')
    const decoded = decodeReplayMetadata(head.encodedMetadata)
    if (!decoded.ok) {
      deps.onReplayIgnored(decoded.reason)
      return jsonReply({ objectKey: '' })
    }
    const upload: ReplayUpload = { sessionId, ...decoded.metadata }
    const frame = {
      ...surface,
      receivedAtMs: deps.now(),
      contentType: 'application/octet-stream',
      contentEncoding: encoding.encoding,
      attributes: JSON.stringify(upload),
      body,
    } as const
    const reply = jsonReply({ objectKey: replayKey({ ...surface, ...upload }) })
    return acceptFrame(deps, 'replay', frame, reply, runtimeProblem)
  }
}

/** A body that begins as gzip is gzip: no JSON does, and a beacon cannot say so. */
function encodingOf(
  header: string | undefined,
  body: Buffer,
): { ok: true; encoding: ContentEncoding } | { ok: false; refusal: Reply } {
  const said = header?.trim().toLowerCase() ?? 'identity'
  if (said !== 'gzip' && said !== 'identity') {
    const message = 'content-encoding must be absent or gzip'
    return { ok: false, refusal: replayProblem({ code: 'REQUEST_INVALID', status: 415, message }) }
  }
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  if (said === 'gzip' && !isGzip) {
    return { ok: false, refusal: rejected('content-encoding says gzip, but the body does not begin as gzip does') }
  }
  return { ok: true, encoding: isGzip ? 'gzip' : 'identity' }
}

function rejected(message: string): Reply {
  return replayProblem({ code: 'REPLAY_UPLOAD_REJECTED', message })
}

/** A path that cannot be decoded has no session id: that is this endpoint's own refusal. */
function replayProblem(problem: Problem): Reply {
  const isPathFault = problem.code === 'REQUEST_INVALID' && problem.status === undefined
  return runtimeProblem(isPathFault ? { ...problem, code: 'REPLAY_UPLOAD_REJECTED' } : problem)
}
