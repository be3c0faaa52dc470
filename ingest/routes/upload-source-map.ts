import { SOURCE_MAP_MAX_BYTES, sourceMapQuerySchema } from '../../schemas/http/source-maps/schemas.ts'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import type { BodyHandler, HeldBody, Reply, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { NOT_STORED, withReceipt } from '../commit/frame-sink.ts'
import type { VerdictWait } from '../releases/verdict-waits.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, invalid, parseBuildQuery, refuseBody, slugFault, withRelease } from './build-route.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

interface UploadHead {
  readonly path: string | undefined
  readonly type: BodyType
}

/** PUT /v3/releases/{releaseSlug}/source-maps/upload?path (spec 4.6): a whole source map. A worker says what it is worth. */
export function uploadSourceMapRoute(deps: IngestDeps): Route {
  return {
    method: 'PUT',
    path: '/v3/releases/:releaseSlug/source-maps/upload',
    bodyLimitBytes: SOURCE_MAP_MAX_BYTES,
    overLimit: { code: 'RELEASE_SIGN_FILE_TOO_LARGE', message: 'the body is over the limit of 64 MiB' },
    renderProblem: buildProblem,
    accept(head) {
      const upload = { path: head.query('path'), type: bodyTypeOf(head) }
      return withRelease(deps, head, 'accepted', place => takeMap(deps, place, upload))
    },
  }
}

function takeMap(deps: IngestDeps, place: ReleaseKey, { path, type }: UploadHead): BodyHandler {
  return (body, held) => {
    const refused = refuseBody(deps, 'source-maps', type)
    if (refused) return refused
    const fault = slugFault(place.slug)
    if (fault !== undefined) return invalid(fault)
    const query = parseBuildQuery(sourceMapQuerySchema, { path })
    if (!query.ok) return invalid(query.fault)
    return withVerdictWait(deps, wait => storeMap(deps, place, { path: query.value.path, body, held, wait }))
  }
}

async function storeMap(
  deps: IngestDeps,
  place: ReleaseKey,
  { path, body, held, wait }: { path: string; body: Buffer; held: HeldBody; wait: VerdictWait },
): Promise<Reply> {
  const { workspaceId, surfaceId, slug } = place
  const attributes: SourceMapJob = { kind: 'single', slug, path, attempt: newJobId() }
  const bytes = body.length
  let receiptId: string
  try {
    const accepted = deps.commits['source-maps'].enqueue({
      workspaceId,
      surfaceId,
      receivedAtMs: deps.now(),
      contentType: 'application/json',
      contentEncoding: 'identity',
      attributes: JSON.stringify(attributes),
      body,
    })
    receiptId = accepted.receiptId
    await accepted.confirmed
  } catch (error) {
    deps.logger.debug({ error: describeError(error) }, 'a source map could not be enqueued')
    return buildProblem(NOT_STORED)
  }
  deps.admission.admitted('source-maps', bytes)
  held.release()
  return withReceipt(verdictReply(await wait.verdict(attributes.attempt)), receiptId)
}
