import { sourceMapPathSchema } from '../../schemas/source-map-path.ts'
import { describeError } from '../../shared/errors.ts'
import type { BodyHandler, Reply, Route } from '../../shared/http-route.ts'
import { partKey } from '../../shared/object-keys.ts'
import { NOT_STORED } from '../accept-frame.ts'
import { type BodyType, bodyTypeOf } from '../body-type.ts'
import {
  buildProblem,
  invalid,
  type ReleasePlace,
  refusal,
  refuseBody,
  slugFault,
  withRelease,
} from '../build-route.ts'
import { type ClaimOutcome, claimPart, type SourceMapPart } from '../claim-part.ts'
import type { IngestDeps } from '../server.ts'
import { jsonReply } from '../surface-route.ts'

const PART_LIMIT_BYTES = 512 * 1024
const MAX_PARTS = 4_096

interface UploadHead {
  readonly part: string | undefined
  readonly path: string | undefined
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
      const upload = { part: head.query('part'), path: head.query('path'), type: bodyTypeOf(head) }
      return withRelease(deps, head, 'accepted', place => takePart(deps, place, upload))
    },
  }
}

function takePart(deps: IngestDeps, place: ReleasePlace, head: UploadHead): BodyHandler {
  return body => {
    const refused = refuseBody(deps, 'source-maps', head.type, ['application/octet-stream', undefined])
    if (refused) return refused
    const fault = slugFault(place.slug) ?? partFault(head.part) ?? pathFault(head.path)
    if (fault !== undefined) return invalid(fault)
    if (body.length === 0) return invalid('the body is empty: a part has at least one byte')
    const part = { path: head.path ?? '', part: Number(head.part), receivedAtMs: deps.now(), body }
    return storePart(deps, place, part)
  }
}

async function storePart(deps: IngestDeps, place: ReleasePlace, part: SourceMapPart): Promise<Reply> {
  const bytes = part.body.length
  let outcome: ClaimOutcome
  try {
    outcome = await claimPart(deps.builds.parts, place, part)
  } catch (error) {
    deps.logger.debug({ error: describeError(error) }, 'a part could not be enqueued')
    return buildProblem(NOT_STORED)
  }
  deps.builds.onPart(outcome)
  if (outcome === 'claimed') deps.admission.admitted('source-maps', bytes)
  return REFUSALS[outcome] ?? jsonReply({ objectKey: partKey({ ...place, path: part.path }, part.part) })
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

function partFault(part: string | undefined): string | undefined {
  if (part === undefined) return 'part is required'
  return /^\d{1,10}$/.test(part) && Number(part) < MAX_PARTS
    ? undefined
    : `part must be an integer from 0 to ${MAX_PARTS - 1}`
}

/** Of the query parameter `path`, here and in 4.6. */
export function pathFault(path: string | undefined): string | undefined {
  if (path === undefined) return 'path is required'
  const result = sourceMapPathSchema.safeParse(path)
  return result.success ? undefined : `path ${result.error.issues[0]?.message}`
}
