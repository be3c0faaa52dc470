import type { Problem } from '../../schemas/http/problems.ts'
import { presentedPublicKey } from '../../shared/http/presented-key.ts'
import {
  type ArrivingBody,
  type BodyHandler,
  type Decision,
  problemReply,
  type Reply,
  type RequestCounter,
  type RequestHead,
} from '../../shared/http/route.ts'
import type { KeyCount } from '../../shared/queue/key-usage.ts'
import type { PublicKeyAuthenticator, SurfaceAuthentication, SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { LimitedHead } from '../auth/key-limits.ts'
import { limitedHead, withLimits } from './with-limits.ts'

/** The common part of the routes with a public key: the key is checked before the body, and problems name one service. */

/** The part of a route's dependencies that `withSurface` uses. */
export interface SurfaceRouteDeps {
  readonly publicKeys: Pick<PublicKeyAuthenticator, 'authenticate'>
}

/** Decides on a request whose public key was accepted. `facts` is what the route read from the head. */
type TakeRequest<F> = (surface: SurfaceCaller, facts: F) => Decision

/** How a route takes requests whose public key was accepted. A route makes it once, because it runs for every request. */
export interface Taker<F> {
  readonly take: TakeRequest<F>
  /** Counts the requests of this kind. */
  readonly counter: RequestCounter
  /** `runtimeProblem` unless given. */
  readonly renderProblem?: (problem: Problem) => Reply
}

/** The head of a request, as far as the check of its key reads it. */
type KeyedHead = Pick<RequestHead, 'header' | 'query' | 'contentLength'>

/** Checks the public key, then calls `take` with the surface and `facts`. Facts are passed through instead of captured. */
export function withSurface<F>(
  { publicKeys }: SurfaceRouteDeps,
  head: KeyedHead,
  body: Pick<ArrivingBody, 'requestId' | 'belongsTo'>,
  facts: F,
  taker: Taker<F>,
): Decision | Promise<Decision> {
  const key = presentedPublicKey(head)
  const authentication =
    key === undefined
      ? publicKeys.authenticate(key, body, head.header('authorization'))
      : publicKeys.authenticate(key, body)
  if (!(authentication instanceof Promise)) {
    return decide(authentication, head, body, undefined, facts, taker)
  }
  // The head is not readable any more when the lookup has ended.
  const limited = limitedHead(head)
  return authentication.then(settled => decide(settled, head, body, limited, facts, taker))
}

function decide<F>(
  authentication: SurfaceAuthentication,
  head: KeyedHead,
  body: Pick<ArrivingBody, 'requestId' | 'belongsTo'>,
  limited: LimitedHead | undefined,
  facts: F,
  { take, counter, renderProblem = runtimeProblem }: Taker<F>,
): Decision | Promise<Decision> {
  if (!authentication.ok) return renderProblem(authentication.problem)
  const { surface, owner, limits, count } = authentication
  count.requests++
  // The head is readable unless the key had to be looked up.
  const { contentLength } = limited ?? head
  body.belongsTo(owner, counter)
  const decision =
    limits === undefined
      ? take(surface, facts)
      : withLimits(
          { limits, onOverQuota: () => counter.overQuota(owner) },
          limited ?? limitedHead(head),
          renderProblem,
          () => take(surface, facts),
        )
  if (contentLength === undefined && typeof decision === 'function') return countingBytes(count, decision)
  count.bytes += contentLength ?? 0
  return decision
}

/** Counts the bytes of a body whose length was not announced. */
function countingBytes(count: KeyCount, take: BodyHandler): BodyHandler {
  return (body, request) => {
    count.bytes += body.length
    return take(body, request)
  }
}

/** Renders a problem. A fault of the request itself names the service that these endpoints belong to. */
export function runtimeProblem(problem: Problem): Reply {
  return problemReply(problem.code === 'REQUEST_INVALID' ? { ...problem, service: 'frontier-runtime' } : problem)
}
