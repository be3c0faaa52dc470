import type { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { Route } from '../../shared/http/route.ts'
import { bodyRoute } from './body-route.ts'
import type { GuardedRequest, GuardedRouteDeps } from './guarded-route.ts'
import { type Outcome, okReply, renderOutcome, replyUnlessUnavailable } from './outcome.ts'
import { withinShares } from './read-shares.ts'
import type { Resource } from './resource.ts'

/** The part of a route that reads by a body which its operation does not state. */
interface QueryRoute<S extends z.ZodType, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. A store that fails throws a TransientError or a PermanentError. */
  readonly run: (request: QueryRequest<z.infer<S>>) => Promise<Outcome<T>>
}

/** A request whose caller is accepted and whose body is valid. */
interface QueryRequest<B> extends Pick<GuardedRequest<never>, 'workspaceId' | 'param' | 'deadline'> {
  readonly body: B
}

/** Returns the route of an operation that reads what a JSON body names. */
export function queryRoute<S extends z.ZodType, T>(
  { authenticate, logger, queryTimeoutMs, shares }: GuardedRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, run }: QueryRoute<S, T>,
): Route {
  return bodyRoute(authenticate, operation, {
    resource,
    body: schema,
    handle({ caller: { workspaceId }, body, param, exchange, closed }) {
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const makeReply = async () =>
        renderOutcome(await run({ workspaceId, body, param, deadline }), { operation, reply: okReply })
      return replyUnlessUnavailable(
        () => withinShares(shares, { owner: workspaceId, operation, signal: deadline }, makeReply),
        { operation, unavailable: resource.unavailable, logger, request: exchange, closed },
      )
    },
  })
}
