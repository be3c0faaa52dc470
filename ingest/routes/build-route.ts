import type { z } from 'zod'
import type { Problem, ProblemCode } from '../../schemas/http/problems.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import { type BodyType, bodyTypeFault } from '../../shared/http/body-type.ts'
import { type BodyHandler, type Decision, problemReply, type Reply, type RequestHead } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Build, BuildAuthentication } from '../auth/authenticate-build.ts'
import type { IngestDeps } from '../routes.ts'

/** What the routes of secret keys have in common: key, scope and release before the body, and problems of one service. */

const SCOPE = 'release:write'

/** Authenticates and checks the scope, and leaves the rest to `take`. */
export function withBuild(
  deps: IngestDeps,
  head: RequestHead,
  take: (build: Build) => Decision | Promise<Decision>,
): Decision | Promise<Decision> {
  const decide = (authentication: BuildAuthentication): Decision | Promise<Decision> => {
    if (!authentication.ok) return buildProblem(authentication.problem)
    const { build } = authentication
    return build.scopes.includes(SCOPE) ? take(build) : refusal('AUTH_AK_SCOPE_MISMATCH', `the key lacks ${SCOPE}`)
  }
  const authentication = deps.builds.secretKeys.authenticate(head.header('authorization'))
  return authentication instanceof Promise ? authentication.then(decide) : decide(authentication)
}

/**
 * Does as `withBuild` does and looks for the release that the path names. Of another surface it is out of the key's
 * reach; an unknown one is `accepted` where things may come before their release, or answered RELEASE_NOT_FOUND.
 */
export function withRelease(
  deps: IngestDeps,
  head: RequestHead,
  unknownRelease: 'accepted' | 'refused',
  take: (place: ReleaseKey) => BodyHandler,
): Decision | Promise<Decision> {
  const slug = head.param('releaseSlug')
  return withBuild(deps, head, ({ surface }) => {
    const decide = (owner: string | undefined): Decision => {
      if (owner !== undefined && owner !== surface.surfaceId) {
        return refusal('AUTH_AK_SCOPE_MISMATCH', 'the release is of another surface than the key')
      }
      if (owner === undefined && unknownRelease === 'refused') {
        return refusal('RELEASE_NOT_FOUND', 'there is no release of this slug')
      }
      return take({ ...surface, slug })
    }
    // What is no slug is that of no release.
    if (slugFault(slug) !== undefined) return decide(undefined)
    const owner = deps.builds.releaseLookup.surfaceOf(surface.workspaceId, slug)
    if (!(owner instanceof Promise)) return decide(owner)
    return owner.then(decide, error => {
      deps.logger.warn({ error: describeError(error) }, 'a release could not be looked up')
      return buildProblem(unavailable('the release could not be looked up'))
    })
  })
}

/** A route without a release gets here with any slug: the shape is checked last. */
export function slugFault(slug: string): string | undefined {
  const result = releaseSlugSchema.safeParse(slug)
  return result.success ? undefined : `releaseSlug ${result.error.issues[0]?.message}`
}

/** Query parameters by their schema. The fault names the first that breaks its rule. */
export function parseBuildQuery<S extends z.ZodType>(
  schema: S,
  values: Readonly<Record<string, string | undefined>>,
): { readonly ok: true; readonly value: z.infer<S> } | { readonly ok: false; readonly fault: string } {
  const result = schema.safeParse(values)
  if (result.success) return { ok: true, value: result.data }
  const [issue] = result.error.issues
  return { ok: false, fault: `${issue?.path.join('.')} ${issue?.message}` }
}

/** Backpressure of a queue and the type of the body, in this order. */
export function refuseBody(
  deps: IngestDeps,
  queue: Parameters<IngestDeps['admission']['refuse']>[0] | undefined,
  type: BodyType,
  mediaTypes: readonly (string | undefined)[] = ['application/json'],
): Reply | undefined {
  const problem = (queue && deps.admission.refuse(queue)) ?? bodyTypeFault(type, mediaTypes)
  return problem && buildProblem(problem)
}

export function invalid(message: string): Reply {
  return refusal('REQUEST_INVALID', message)
}

export function refusal(code: ProblemCode, message: string): Reply {
  return buildProblem({ code, message })
}

export function unavailable(message: string, retryAfterSeconds = 1): Problem {
  return { code: 'INGEST_INFRA_UNAVAILABLE', message, retryAfterSeconds }
}

const OWN_CODES: ReadonlySet<ProblemCode> = new Set([
  'REQUEST_INVALID',
  'INGEST_BACKPRESSURE',
  'INGEST_INFRA_UNAVAILABLE',
])

/** What has no service of its own is told in the name of this one. */
export function buildProblem(problem: Problem): Reply {
  return problemReply(OWN_CODES.has(problem.code) ? { ...problem, service: 'frontier-buildtime' } : problem)
}
