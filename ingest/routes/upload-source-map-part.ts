import { sourceMapPartQuerySchema } from '../../schemas/http/source-maps/schemas.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import type { BodyHandler, Reply, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { NOT_STORED, withReceipt } from '../commit/frame-sink.ts'
import { type ClaimOutcome, claimPart, type SourceMapPart } from '../releases/claim-part.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, invalid, parseBuildQuery, refusal, refuseBody, slugFault, withRelease } from './build-route.ts'
import { jsonReply } from './surface-route.ts'

const PART_LIMIT_BYTES = 512 * 1024

interface UploadHead {
  readonly query: Readonly<Record<'part' | 'path', string | undefined>>
  readonly type: BodyType
}

/**
 * PUT /v3/releases/{releaseSlug}/source-maps?part&path (spec 4.5): a part of a source map. The first bytes of a part stay;
 * sent again it has the same answer, and other bytes are a conflict.
 */
export function uploadSourceMapPartRoute(deps: IngestDeps): Route {
  return {
    method: 'PUT',
    path: '/v3/releases/:releaseSlug/source-maps',
    bodyLimitBytes: PART_LIMIT_BYTES,
    overLimit: { code: 'RELEASE_SIGN_FILE_TOO_LARGE', message: 'the body is over the limit of 512 KiB a part' },
    renderProblem: buildProblem,
    accept(head) {
      const upload = { query: { part: head.query('part'), path: head.query('path') }, type: bodyTypeOf(head) }
      return withRelease(deps, head, 'accepted', place => takePart(deps, place, upload))
    },
  }
}

function takePart(deps: IngestDeps, place: ReleaseKey, head: UploadHead): BodyHandler {
  return body => {
    const refused = refuseBody(deps, 'source-maps', head.type, ['application/octet-stream', undefined])
    if (refused) return refused
    const fault = slugFault(place.slug)
    if (fault !== undefined) return invalid(fault)
    const query = parseBuildQuery(sourceMapPartQuerySchema, head.query)
    if (!query.ok) return invalid(query.fault)
    if (body.length === 0) return invalid('the body is empty: a part has at least one byte')
    return storePart(deps, place, { ...query.value, receivedAtMs: deps.now(), body })
  }
}

async function storePart(deps: IngestDeps, place: ReleaseKey, part: SourceMapPart): Promise<Reply> {
  const bytes = part.body.length
  let claim: Awaited<ReturnType<typeof claimPart>>
  try {
    claim = await claimPart(deps.builds.parts, place, part)
  } catch (error) {
    deps.logger.debug({ error: describeError(error) }, 'a part could not be enqueued')
    return buildProblem(NOT_STORED)
  }
  const { outcome, receiptId } = claim
  deps.builds.onPart(outcome)
  const refusal = REFUSALS[outcome]
  if (refusal) return refusal
  const reply = jsonReply({ objectKey: partKey({ ...place, path: part.path }, part.part) })
  if (outcome !== 'claimed') return reply
  deps.admission.admitted('source-maps', bytes)
  return withReceipt(reply, receiptId)
}

const REFUSALS: Readonly<Record<ClaimOutcome, Reply | undefined>> = {
  claimed: undefined,
  repeated: undefined,
  conflict: refusal('RELEASE_UPLOAD_CONFLICT', 'this part was sent before with other bytes'),
  sealed: refusal('RELEASE_UPLOAD_CONFLICT', 'the map of this path is complete and in use: it takes no further part'),
  too_large: refusal(
    'RELEASE_SIGN_FILE_TOO_LARGE',
    'the parts of this path are together over the size that was declared for it, or over 64 MiB',
  ),
}
