import type { Problem, ProblemCode } from '../../schemas/http/problems.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import { type BodyType, bodyTypeFault } from '../../shared/http/body-type.ts'
import { checkValue } from '../../shared/http/check-value.ts'
import {
  type ArrivingBody,
  type Decision,
  problemReply,
  type Reply,
  type RequestCounter,
  type RequestHead,
} from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { BuildAuthentication, BuildCaller, SecretKeyAuthenticator } from '../auth/authenticate-build.ts'
import type { ReleaseLookup } from '../auth/release-lookup.ts'
import { limitedHead, withLimits } from './with-limits.ts'

/** The common part of the routes with a secret key: key, scope and release before the body, and problems that name one service. */

/** The part of a route's dependencies that `withBuild` uses. */
export interface BuildRouteDeps {
  readonly secretKeys: Pick<SecretKeyAuthenticator, 'authenticate'>
  /** Counts the requests of the route. */
  readonly counter: RequestCounter
}

/** The part of a route's dependencies that `withRelease` uses. */
export interface ReleaseRouteDeps extends BuildRouteDeps {
  readonly releaseLookup: Pick<ReleaseLookup, 'surfaceOf'>
  readonly logger: Logger
}

/** The release that a request names. */
export interface NamedRelease extends ReleaseKey {
  /** Set if it is not registered. */
  readonly isUnknown?: true
}

const SCOPE = 'release:write'

/** Checks the secret key and its scope, then calls `take`. */
export function withBuild(
  { secretKeys, counter }: BuildRouteDeps,
  head: RequestHead,
  body: ArrivingBody,
  take: (build: BuildCaller) => Decision | Promise<Decision>,
): Decision | Promise<Decision> {
  const limited = limitedHead(head)
  const decide = (authentication: BuildAuthentication): Decision | Promise<Decision> => {
    if (!authentication.ok) return buildProblem(authentication.problem)
    const { build } = authentication
    build.count.requests++
    body.belongsTo(build.owner, counter)
    if (!build.scopes.includes(SCOPE)) return refusal('AUTH_AK_SCOPE_MISMATCH', `the key lacks ${SCOPE}`)
    const { limits, owner } = build
    if (limits === undefined) return take(build)
    return withLimits({ limits, onOverQuota: () => counter.overQuota(owner) }, limited, buildProblem, () => take(build))
  }
  const authentication = secretKeys.authenticate(head.header('authorization'), body)
  return authentication instanceof Promise ? authentication.then(decide) : decide(authentication)
}

/**
 * Does as `withBuild` does, and looks up the release that the path names. A release of another surface is a mismatch of
 * the key's scope. An unknown release is `accepted` where requests may precede the registration of their release, else
 * the reply is RELEASE_NOT_FOUND.
 */
export function withRelease(
  deps: ReleaseRouteDeps,
  head: RequestHead,
  body: ArrivingBody,
  unknownRelease: 'accepted' | 'refused',
  take: (release: NamedRelease) => Decision,
): Decision | Promise<Decision> {
  const slug = head.param('releaseSlug')
  return withBuild(deps, head, body, ({ surface }) => {
    const decide = (owner: string | undefined): Decision => {
      if (owner !== undefined && owner !== surface.surfaceId) {
        return refusal('AUTH_AK_SCOPE_MISMATCH', 'the release belongs to another surface than the key')
      }
      if (owner === undefined && unknownRelease === 'refused') {
        return refusal('RELEASE_NOT_FOUND', 'releaseSlug is unknown: register the release first')
      }
      return take({ ...surface, slug, ...(owner === undefined && { isUnknown: true }) })
    }
    // A malformed slug cannot name a release.
    if (slugFault(slug) !== undefined) return decide(undefined)
    const owner = deps.releaseLookup.surfaceOf(surface.workspaceId, slug)
    if (!(owner instanceof Promise)) return decide(owner)
    return owner.then(decide, error => {
      deps.logger.warn({ requestId: body.requestId, ...errorFields(error) }, 'a release could not be looked up')
      return buildProblem(unavailable('the release could not be looked up; send the request again'))
    })
  })
}

/** Returns the fault of a slug. Routes that accept unknown releases check it last, because the order of checks is fixed. */
export function slugFault(slug: string): string | undefined {
  const checked = checkValue(releaseSlugSchema, slug, ['releaseSlug'])
  return checked.ok ? undefined : checked.fault
}

/** Returns the reply that refuses a body: for the backpressure of its queue, else for its type. */
export function refuseBody(
  backpressure: Problem | undefined,
  type: BodyType,
  mediaTypes: readonly (string | undefined)[] = ['application/json'],
): Reply | undefined {
  const problem = backpressure ?? bodyTypeFault(type, mediaTypes)
  return problem && buildProblem(problem)
}

/** Returns the reply to a request that breaks a rule. */
export function invalid(message: string): Reply {
  return refusal('REQUEST_INVALID', message)
}

/** Returns the reply with this problem. */
export function refusal(code: ProblemCode, message: string): Reply {
  return buildProblem({ code, message })
}

/** Returns the problem of a dependency that is unavailable. */
export function unavailable(message: string, retryAfterSeconds = 1): Problem {
  return { code: 'INGEST_INFRA_UNAVAILABLE', message, retryAfterSeconds }
}

const OWN_CODES: ReadonlySet<ProblemCode> = new Set([
  'REQUEST_INVALID',
  'INGEST_BACKPRESSURE',
  'INGEST_INFRA_UNAVAILABLE',
])

/** Renders a problem. Problems without an owning service are reported as `frontier-buildtime`. */
export function buildProblem(problem: Problem): Reply {
  return problemReply(OWN_CODES.has(problem.code) ? { ...problem, service: 'frontier-buildtime' } : problem)
}
