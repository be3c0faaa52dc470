import type { Problem } from '../../schemas/http/problems.ts'
import { type Decision, problemReply, type Reply, type RequestHead } from '../../shared/http/route.ts'
import type { Authentication, SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { IngestDeps } from '../routes.ts'

/** What the routes of public keys have in common: the key before the body, and problems of one service. */

/** The header wins over the query (CONTRACT section 2). */
export function presentedKey(head: RequestHead): string | undefined {
  return head.header('x-service-public-key') || head.query('public_key')
}

/** Authenticates, and leaves the rest to `take`. */
export function withSurface(
  deps: IngestDeps,
  head: RequestHead,
  take: (surface: SurfaceCaller) => Decision,
): Decision | Promise<Decision> {
  const decide = (authentication: Authentication): Decision =>
    authentication.ok ? take(authentication.surface) : runtimeProblem(authentication.problem)
  const authentication = deps.authenticator.authenticate(presentedKey(head))
  return authentication instanceof Promise ? authentication.then(decide) : decide(authentication)
}

/** A fault of the request's own is told in the name of the service that the endpoint belongs to. */
export function runtimeProblem(problem: Problem): Reply {
  return problemReply(problem.code === 'REQUEST_INVALID' ? { ...problem, service: 'frontier-runtime' } : problem)
}

export function jsonReply(body: unknown): Reply {
  return { status: 200, headers: [['content-type', 'application/json']], body: JSON.stringify(body) }
}
