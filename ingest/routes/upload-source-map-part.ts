import type { Redis } from 'ioredis'
import { SOURCE_MAP_PART_BYTES } from '../../schemas/http/limits.ts'
import { uploadSourceMapPart } from '../../schemas/http/source-maps/operations.ts'
import { sourceMapPartQuerySchema } from '../../schemas/http/source-maps/schemas.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseQuery } from '../../shared/http/parse-query.ts'
import { type Decision, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import { overUploadBudget } from '../../shared/queue/upload-budget.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import {
  type ClaimedPart,
  type ClaimOutcome,
  claimPart,
  forgetSealedClaims,
  type SourceMapPart,
} from '../releases/claim-part.ts'
import {
  buildProblem,
  invalid,
  type NamedRelease,
  type ReleaseRouteDeps,
  refusal,
  refuseBody,
  slugFault,
  unavailable,
  withRelease,
} from './build-route.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `source-maps`. */
  readonly sink: Sink
  readonly releases: Pick<ReleaseStore, 'manifest'>
  /** The Redis of the queues, where claims are stored. */
  readonly signing: { readonly uploads: Redis }
  readonly onPart: (outcome: ClaimOutcome) => void
  readonly now: () => number
}

/** The facts that the head of an upload states. */
interface UploadHead {
  readonly query: Readonly<Record<'part' | 'path', string | undefined>>
  readonly type: BodyType
}

/**
 * Accepts a part of a source map. The first bytes of a part stay: sent again they get the same reply, and other bytes are
 * a conflict (docs/api/releases.md#source-map-part).
 */
export function uploadSourceMapPartRoute(deps: Deps): Route {
  return operationRoute(uploadSourceMapPart, {
    renderProblem: buildProblem,
    accept(head, body) {
      const upload = { query: { part: head.query('part'), path: head.query('path') }, type: bodyTypeOf(head) }
      return withRelease(deps, head, body, 'accepted', release => takePart(deps, release, upload))
    },
  })
}

function takePart(deps: Deps, release: NamedRelease, head: UploadHead): Decision {
  const admitted = deps.sink.admit(release, head.type.contentLength, SOURCE_MAP_PART_BYTES)
  if ('code' in admitted) return buildProblem(admitted)
  return (body, request) => {
    const refused = refuseBody(undefined, head.type, ['application/octet-stream', undefined])
    if (refused) return refused
    const fault = slugFault(release.slug)
    if (fault !== undefined) return invalid(fault)
    const query = parseQuery(sourceMapPartQuerySchema, head.query)
    if (!query.ok) return invalid(query.fault)
    if (body.length === 0) return invalid('the body is empty: a part has at least one byte')
    const { isUnknown } = release
    return storePart(deps, admitted, release, { ...query.value, isUnknown, receivedAtMs: deps.now(), body, request })
  }
}

async function storePart(
  deps: Deps,
  admitted: AdmittedRequest,
  release: ReleaseKey,
  part: SourceMapPart,
): Promise<Reply> {
  const claim = await claimPart(admitted, release, part)
  // The body is gone by now, so the client sends it again.
  if (await isOfDeleted(deps, release, part, claim)) return CLAIMS_REMOVED
  if (!claim.ok) return buildProblem(claim.problem)
  const { outcome } = claim
  deps.onPart(outcome)
  return REFUSALS[outcome] ?? jsonReply({ objectKey: partKey({ ...release, path: part.path }, part.part) })
}

const CLAIMS_REMOVED = buildProblem(
  unavailable(
    'the parts of this path belonged to a release that was deleted, and are removed now; send the part again',
  ),
)

/** Returns whether the claims that a part met are of a manifest that its release does not have any more. Removes them then. */
async function isOfDeleted(
  { releases, signing: { uploads }, logger }: Deps,
  release: ReleaseKey,
  { request, ...part }: SourceMapPart,
  claim: ClaimedPart,
): Promise<boolean> {
  if (!claim.ok || !MET_CLAIMS.has(claim.outcome)) return false
  try {
    const hasManifest = async () => (await releases.manifest(release.workspaceId, release.slug)) !== undefined
    return await forgetSealedClaims(uploads, release, part, hasManifest)
  } catch (error) {
    const { requestId } = request
    logger.warn({ requestId, ...errorFields(error) }, 'the claims of a deleted release could not be removed')
    return false
  }
}

const MET_CLAIMS: ReadonlySet<ClaimOutcome> = new Set(['repeated', 'conflict', 'sealed'])

const REFUSALS: Readonly<Record<ClaimOutcome, Reply | undefined>> = {
  claimed: undefined,
  repeated: undefined,
  conflict: refusal('RELEASE_UPLOAD_CONFLICT', 'this part was sent before with other bytes'),
  sealed: refusal('RELEASE_UPLOAD_CONFLICT', 'the map of this path is complete and in use: it takes no further part'),
  too_large: refusal(
    'RELEASE_SIGN_FILE_TOO_LARGE',
    'the parts of this path are together over the size that was declared for it, or over 64 MiB',
  ),
  over_budget: buildProblem(overUploadBudget('path')),
}
