import type { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { problemReply, type Route } from '../../shared/http/route.ts'
import {
  type GuardedRequest,
  type GuardedRouteDeps,
  guardOf,
  namesNothing,
  pathParameters,
  workspaceSlugOf,
} from './guarded-route.ts'
import { invalid, type Outcome, okReply, refusalReply, renderOutcome, replyUnlessUnavailable } from './outcome.ts'
import { withinShares } from './read-shares.ts'
import type { Resource } from './resource.ts'

/** The part of a route that reads by a body which its operation does not state. */
export interface QueryRoute<S extends z.ZodType, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. A store that fails throws a TransientError or a PermanentError. */
  readonly run: (request: QueryRequest<z.infer<S>>) => Promise<Outcome<T>>
}

/** A request whose caller is accepted and whose body is valid. */
export interface QueryRequest<B> extends Pick<GuardedRequest<never>, 'workspaceId' | 'param' | 'deadline'> {
  readonly body: B
}

/**
 * Returns the route of an operation that reads what a JSON body names. The body is received only after the credential is
 * accepted, which is checked again when the body is complete, because it may have been revoked meanwhile.
 */
export function queryRoute<S extends z.ZodType, T>(
  { authenticate, logger, queryTimeoutMs, shares }: GuardedRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, run }: QueryRoute<S, T>,
): Route {
  const guard = guardOf(operation, resource)
  const paramsOf = pathParameters(operation)
  return operationRoute(operation, {
    async accept(head, arriving) {
      const closed = head.closed()
      const type = bodyTypeOf(head)
      const authorization = head.header('authorization')
      const param = paramsOf(head)
      const slug = workspaceSlugOf(operation, param)
      const accepted = await authenticate(authorization, guard, slug, arriving)
      if (!accepted.ok) return problemReply(accepted.problem)
      const { workspaceId } = accepted.caller
      arriving.belongsTo(workspaceId)
      if (namesNothing(operation, param)) return problemReply(resource.notFound)
      return async bytes => {
        const fault = bodyTypeFault(type, ['application/json'])
        if (fault) return refusalReply(fault, operation)
        const body = parseJsonBody(schema, bytes)
        if (!body.ok) return refusalReply(invalid(body.fault).problem, operation)
        const access = await authenticate(authorization, guard, slug, arriving)
        if (!access.ok) return problemReply(access.problem)
        const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
        const request = { workspaceId, body: body.value, param, deadline }
        const makeReply = async () => renderOutcome(await run(request), { operation, reply: okReply })
        return replyUnlessUnavailable(
          () => withinShares(shares, { owner: workspaceId, operation, signal: deadline }, makeReply),
          { operation, unavailable: resource.unavailable, logger, request: arriving, closed },
        )
      }
    },
  })
}
