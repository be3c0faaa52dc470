import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { uploadSourceMap } from '../../schemas/http/source-maps/operations.ts'
import { sourceMapQuerySchema } from '../../schemas/http/source-maps/schemas.ts'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseQuery } from '../../shared/http/parse-query.ts'
import type { Decision, HeldBody, Reply, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import type { FrameSink } from '../commit/frame-sink.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import { buildProblem, invalid, type ReleaseRouteDeps, refuseBody, slugFault, withRelease } from './build-route.ts'
import { refuseHead } from './refuse-head.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `source-maps`. */
  readonly sink: FrameSink
  readonly verdicts: Pick<VerdictWaits, 'begin'>
  readonly now: () => number
}

/** The facts that the head of an upload states. */
interface UploadHead {
  readonly path: string | undefined
  readonly type: BodyType
}

/** A map that is about to be enqueued, and the slot in which its client waits. */
interface Upload {
  readonly path: string
  readonly body: Buffer
  readonly held: HeldBody
  readonly wait: VerdictWait
}

/** The reply of the sink to an accepted map. The client gets the verdict instead. */
const ENQUEUED: Reply = { status: 200 }

/**
 * Accepts a whole source map, and replies with the verdict of the worker that validates it
 * (docs/api/releases.md#source-map-single).
 */
export function uploadSourceMapRoute(deps: Deps): Route {
  return operationRoute(uploadSourceMap, {
    renderProblem: buildProblem,
    accept(head, body) {
      const upload = { path: head.query('path'), type: bodyTypeOf(head) }
      return withRelease(deps, head, body, 'accepted', release => takeMap(deps, release, upload))
    },
  })
}

function takeMap(deps: Deps, release: ReleaseKey, { path, type }: UploadHead): Decision {
  const backpressure = refuseHead(deps.sink, release, type.contentLength, SOURCE_MAP_MAX_BYTES)
  if (backpressure) return buildProblem(backpressure)
  return (body, held) => {
    const refused = refuseBody(undefined, type)
    if (refused) return refused
    const fault = slugFault(release.slug)
    if (fault !== undefined) return invalid(fault)
    const query = parseQuery(sourceMapQuerySchema, { path })
    if (!query.ok) return invalid(query.fault)
    return withVerdictWait(deps.verdicts, release, wait =>
      storeMap(deps, release, { ...query.value, body, held, wait }),
    )
  }
}

async function storeMap(deps: Deps, release: ReleaseKey, { path, body, held, wait }: Upload): Promise<Reply> {
  const { workspaceId, surfaceId, slug } = release
  const attributes: SourceMapJob = { kind: 'single', slug, path, attempt: newJobId() }
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs: deps.now(),
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const problem = await enqueue(deps.sink, frame, held)
  if (problem !== undefined) return buildProblem(problem)
  held.release()
  return verdictReply(await wait.verdict(attributes.attempt))
}

/** Resolves when the map is on disk, or with the problem of the request. The client gets the verdict instead of the answer. */
function enqueue(sink: FrameSink, frame: PayloadFrame, held: HeldBody): Promise<Problem | undefined> {
  return new Promise(resolve => {
    sink.accept(frame, ENQUEUED, {
      get requestId() {
        return held.requestId
      },
      committed: (outcome, arrivedAtMs, receiptId) =>
        held.committed(outcome, arrivedAtMs, receiptId && Buffer.from(receiptId)),
      answer: () => resolve(undefined),
      refuse: resolve,
    })
  })
}
