import { IDEMPOTENCY_KEY_HEADER } from '../../schemas/http/fields.ts'
import { registerRelease } from '../../schemas/http/releases/operations.ts'
import { type RegisterRelease, registerReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import type { Release } from '../../schemas/records/directory.ts'
import { CreationRefused, TOO_MANY_CREATIONS } from '../../shared/directory/creations.ts'
import type { DirectoryMemory } from '../../shared/directory/directory-memory.ts'
import { MALFORMED_KEY, newCreation, plainKey } from '../../shared/directory/new-creation.ts'
import { RELEASES_MAX, type ReleaseStore } from '../../shared/directory/release-store.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { type IdentifiedRequest, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { ReleaseLookup } from '../auth/release-lookup.ts'
import {
  type BuildRouteDeps,
  buildProblem,
  invalid,
  refusal,
  refuseBody,
  unavailable,
  withBuild,
} from './build-route.ts'

interface Deps extends BuildRouteDeps {
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
  readonly releases: Pick<ReleaseStore, 'register'>
  readonly releaseLookup: Pick<ReleaseLookup, 'remember'>
  readonly logger: Logger
  readonly now: () => number
}

/** Many JSON parsers recurse. No real metadata is nested as deep as this. */
const MAX_DEPTH = 100

const TOO_MANY_RELEASES = invalid(
  `version must bring a workspace to at most ${RELEASES_MAX} releases: delete releases that are not used`,
)

/** Registers a release. The same surface and version get the same slug (docs/api/releases.md#register-release). */
export function registerReleaseRoute(deps: Deps): Route {
  return operationRoute(registerRelease, {
    renderProblem: buildProblem,
    accept(head, arriving) {
      const type = bodyTypeOf(head)
      const header = head.header(IDEMPOTENCY_KEY_HEADER)
      return withBuild(deps, head, arriving, ({ surface }) => (body, held) => {
        const refused = refuseBody(deps.directoryMemory.refuse(), type)
        if (refused) return refused
        const parsed = parseJsonBody(registerReleaseSchema, body, MAX_DEPTH)
        if (!parsed.ok) return invalid(parsed.fault)
        const key = header === undefined ? undefined : plainKey(header)
        if (header !== undefined && key === undefined) return invalid(MALFORMED_KEY)
        return register(deps, surface, parsed.value, key, held)
      })
    },
  })
}

async function register(
  deps: Deps,
  surface: SurfaceCaller,
  asked: RegisterRelease,
  key: string | undefined,
  request: IdentifiedRequest,
): Promise<Reply> {
  const { workspaceId, surfaceId } = surface
  const { version, commit: gitCommit, metadata } = asked
  const slug = releaseSlugOf({ ...surface, name: version })
  const nowMs = deps.now()
  const record: Release = {
    version: 1,
    slug,
    workspaceId,
    surfaceId,
    name: version,
    commit: gitCommit ?? null,
    metadata: (metadata as Release['metadata'] | undefined) ?? null,
    createdAt: new Date(nowMs).toISOString(),
  }
  const creation =
    key === undefined ? undefined : newCreation({ workspaceId, of: ['registerRelease', surfaceId], key, asked }, nowMs)
  const once = creation && { creation, answerOf: () => ({ releaseSlug: slug }) }
  try {
    const release = await deps.releases.register(record, once)
    if (release === 'too_many_releases') return TOO_MANY_RELEASES
    deps.releaseLookup.remember(release)
  } catch (error) {
    if (error instanceof CreationRefused) return repeated(error, creation?.fingerprint)
    deps.logger.warn({ requestId: request.requestId, ...errorFields(error) }, 'a release could not be registered')
    return buildProblem(unavailable('the release could not be registered; send the request again'))
  }
  return jsonReply({ releaseSlug: slug })
}

/** Answers a registration that was made before with the same idempotency key (docs/api/requests.md#idempotency). */
function repeated({ stored }: CreationRefused, fingerprint: string | undefined): Reply {
  if (stored === undefined) return buildProblem({ code: 'INGEST_BACKPRESSURE', ...TOO_MANY_CREATIONS })
  return stored.fingerprint === fingerprint
    ? jsonReply(stored.answer)
    : refusal('IDEMPOTENCY_CONFLICT', 'Idempotency-Key was used with another request')
}
