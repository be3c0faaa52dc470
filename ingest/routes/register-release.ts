import { registerRelease } from '../../schemas/http/releases/operations.ts'
import { type RegisterRelease, registerReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import type { Release } from '../../schemas/records/directory.ts'
import type { DirectoryMemory } from '../../shared/directory/directory-memory.ts'
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
import { type BuildRouteDeps, buildProblem, invalid, refuseBody, unavailable, withBuild } from './build-route.ts'

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
      return withBuild(deps, head, arriving, ({ surface }) => (body, held) => {
        const refused = refuseBody(deps.directoryMemory.refuse(), type)
        if (refused) return refused
        const parsed = parseJsonBody(registerReleaseSchema, body, MAX_DEPTH)
        return parsed.ok ? register(deps, surface, parsed.value, held) : invalid(parsed.fault)
      })
    },
  })
}

async function register(
  deps: Deps,
  surface: SurfaceCaller,
  { version, commit: gitCommit, metadata }: RegisterRelease,
  request: IdentifiedRequest,
): Promise<Reply> {
  const { workspaceId, surfaceId } = surface
  const slug = releaseSlugOf({ ...surface, name: version })
  const createdAt = new Date(deps.now()).toISOString()
  try {
    const release = await deps.releases.register({
      version: 1,
      slug,
      workspaceId,
      surfaceId,
      name: version,
      commit: gitCommit ?? null,
      metadata: (metadata as Release['metadata'] | undefined) ?? null,
      createdAt,
    })
    if (release === 'too_many_releases') return TOO_MANY_RELEASES
    deps.releaseLookup.remember(release)
  } catch (error) {
    deps.logger.warn({ requestId: request.requestId, ...errorFields(error) }, 'a release could not be registered')
    return buildProblem(unavailable('the release could not be registered; send the request again'))
  }
  return jsonReply({ releaseSlug: slug })
}
