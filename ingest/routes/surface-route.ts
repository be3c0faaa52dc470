import type { Problem } from '../../schemas/http/problems.ts'
import {
  type ArrivingBody,
  type Decision,
  problemReply,
  type Reply,
  type RequestHead,
} from '../../shared/http/route.ts'
import type { PublicKeyAuthenticator, SurfaceAuthentication, SurfaceCaller } from '../auth/authenticate-surface.ts'

/** The common part of the routes with a public key: the key is checked before the body, and problems name one service. */

/** The part of a route's dependencies that `withSurface` uses. */
export interface SurfaceRouteDeps {
  readonly publicKeys: Pick<PublicKeyAuthenticator, 'authenticate'>
}

/** Decides on a request whose public key was accepted. `facts` is what the route read from the head. */
export type TakeRequest<F> = (surface: SurfaceCaller, facts: F) => Decision

/**
 * Checks the public key, then calls `take` with the surface and `facts`. Facts are passed through instead of captured,
 * because this runs for every request: a route makes `take` once.
 */
export function withSurface<F>(
  { publicKeys }: SurfaceRouteDeps,
  head: RequestHead,
  body: ArrivingBody,
  facts: F,
  take: TakeRequest<F>,
  renderProblem: (problem: Problem) => Reply = runtimeProblem,
): Decision | Promise<Decision> {
  const authentication = publicKeys.authenticate(presentedKey(head))
  return authentication instanceof Promise
    ? authentication.then(settled => decide(settled, body, facts, take, renderProblem))
    : decide(authentication, body, facts, take, renderProblem)
}

function decide<F>(
  authentication: SurfaceAuthentication,
  body: ArrivingBody,
  facts: F,
  take: TakeRequest<F>,
  renderProblem: (problem: Problem) => Reply,
): Decision {
  if (!authentication.ok) return renderProblem(authentication.problem)
  body.belongsTo(authentication.owner)
  return take(authentication.surface, facts)
}

/** Returns the key of a request. The header wins over the query (docs/contract.md#credentials). */
function presentedKey(head: RequestHead): string | undefined {
  return head.header('x-service-public-key') || head.query('public_key')
}

/** Renders a problem. A fault of the request itself names the service that these endpoints belong to. */
export function runtimeProblem(problem: Problem): Reply {
  return problemReply(problem.code === 'REQUEST_INVALID' ? { ...problem, service: 'frontier-runtime' } : problem)
}
