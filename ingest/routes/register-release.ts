import { type RegisterRelease, registerReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, invalid, refuseBody, unavailable, withBuild } from './build-route.ts'
import { jsonReply } from './surface-route.ts'

const BODY_LIMIT_BYTES = 256 * 1024

/** Many readers of JSON recurse, and no metadata is nested like this. */
const MAX_DEPTH = 100

/** POST /v3/releases (CONTRACT section 5): the same surface and version get the same slug. */
export function registerReleaseRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/v3/releases',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    overLimit: { code: 'REQUEST_INVALID', status: 413, message: 'the body is over the limit of 256 KiB' },
    renderProblem: buildProblem,
    accept(head) {
      const type = bodyTypeOf(head)
      return withBuild(deps, head, ({ surface }) => body => {
        const refused = refuseBody(deps, undefined, type)
        if (refused) return refused
        const parsed = parseJsonBody(registerReleaseSchema, body, MAX_DEPTH)
        return parsed.ok ? register(deps, surface, parsed.value) : invalid(parsed.fault)
      })
    },
  }
}

async function register(
  deps: IngestDeps,
  surface: SurfaceCaller,
  { version, commit, metadata }: RegisterRelease,
): Promise<Reply> {
  const { workspaceId, surfaceId } = surface
  const slug = releaseSlugOf({ ...surface, name: version })
  const createdAt = new Date(deps.now()).toISOString()
  try {
    const release = await deps.builds.releases.register({
      version: 1,
      slug,
      workspaceId,
      surfaceId,
      name: version,
      commit: commit ?? null,
      metadata: metadata ?? null,
      createdAt,
    })
    deps.builds.releaseLookup.remember(release)
  } catch (error) {
    deps.logger.warn({ error: describeError(error) }, 'a release could not be registered')
    return buildProblem(unavailable('the release could not be registered; send it again'))
  }
  return jsonReply({ releaseSlug: slug })
}
