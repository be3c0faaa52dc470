import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import { uploadSourceMap } from '../../schemas/http/source-maps/operations.ts'
import { sourceMapQuerySchema } from '../../schemas/http/source-maps/schemas.ts'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseQuery } from '../../shared/http/parse-query.ts'
import type { Decision, HeldBody, Reply, Route } from '../../shared/http/route.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import {
  buildProblem,
  invalid,
  type NamedRelease,
  type ReleaseRouteDeps,
  refuseBody,
  slugFault,
  withRelease,
} from './build-route.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `source-maps`. */
  readonly sink: Sink
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
  readonly admitted: AdmittedRequest
  readonly body: Buffer
  readonly request: HeldBody
  readonly wait: VerdictWait
}

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

function takeMap(deps: Deps, release: NamedRelease, { path, type }: UploadHead): Decision {
  const admitted = deps.sink.admit(release, type.contentLength, SOURCE_MAP_MAX_BYTES)
  if ('code' in admitted) return buildProblem(admitted)
  return (body, request) => {
    const refused = refuseBody(undefined, type)
    if (refused) return refused
    const fault = slugFault(release.slug)
    if (fault !== undefined) return invalid(fault)
    const query = parseQuery(sourceMapQuerySchema, { path })
    if (!query.ok) return invalid(query.fault)
    return withVerdictWait(deps.verdicts, release, wait =>
      storeMap(deps, release, { ...query.value, admitted, body, request, wait }),
    )
  }
}

async function storeMap(
  deps: Deps,
  release: NamedRelease,
  { path, admitted, body, request, wait }: Upload,
): Promise<Reply> {
  const { workspaceId, surfaceId, slug, isUnknown } = release
  const attributes: SourceMapJob = { kind: 'single', slug, isUnknown, path, attempt: newJobId() }
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs: deps.now(),
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const stored = await admitted.store(frame, request)
  if (!stored.ok) return buildProblem(stored.problem)
  request.release()
  return verdictReply(await wait.verdict(attributes.attempt))
}
