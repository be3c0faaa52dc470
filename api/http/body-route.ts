import type { z } from 'zod'
import { IDEMPOTENCY_KEY_HEADER } from '../../schemas/http/fields.ts'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { otherParameterFault } from '../../shared/http/parse-query.ts'
import { type IdentifiedRequest, problemReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { Authenticate, Caller } from '../auth/caller.ts'
import { presentedBy } from '../auth/protected-resource.ts'
import { guardOf, namesNothing, pathParameters, workspaceSlugOf } from './guarded-route.ts'
import { invalid, refusalReply } from './outcome.ts'
import type { Resource } from './resource.ts'

/** The part of a route with a JSON body that its operation does not state. */
interface BodyRoute<S extends z.ZodType> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Returns why no body is taken at this time, or undefined. */
  readonly refuse?: () => Problem | undefined
  /** Answers an accepted caller with a valid body. */
  readonly handle: (request: BodyRequest<z.infer<S>>) => Promise<Reply>
}

/** A request whose caller is accepted and whose body is valid. */
export interface BodyRequest<B> {
  readonly caller: Caller
  readonly body: B
  /** Returns a parameter of the path, which may have any text. */
  readonly param: (name: string) => string
  /** The header `Idempotency-Key`, as sent. */
  readonly idempotencyKey: string | undefined
  /** The request as the log names it. */
  readonly exchange: IdentifiedRequest
  /** Fires when the client leaves before the response is complete. */
  readonly closed: AbortSignal
}

/**
 * Returns the route of an operation with a JSON body. The body is received only after the credential is accepted. The
 * credential is checked again when the body is complete, because it may have been revoked while a slow body arrived.
 */
export function bodyRoute<S extends z.ZodType>(
  authenticate: Authenticate,
  operation: PermittedOperation,
  { resource, body: schema, refuse, handle }: BodyRoute<S>,
): Route {
  const guard = guardOf(operation, resource)
  const paramsOf = pathParameters(operation)
  return operationRoute(operation, {
    async accept(head, arriving) {
      const closed = head.closed()
      const type = bodyTypeOf(head)
      const presented = presentedBy(head)
      const param = paramsOf(head)
      const idempotencyKey = head.header(IDEMPOTENCY_KEY_HEADER)
      const otherFault = otherParameterFault(operation, head.rawQuery(), [])
      const slug = workspaceSlugOf(operation, param)
      const accepted = await authenticate(presented, guard, slug, arriving)
      if (!accepted.ok) return problemReply(accepted.problem)
      arriving.belongsTo(accepted.caller.workspaceId)
      if (namesNothing(operation, param)) return problemReply(resource.notFound)
      return async bytes => {
        const fault = refuse?.() ?? bodyTypeFault(type, ['application/json'])
        if (fault) return refusalReply(fault, operation)
        if (otherFault !== undefined) return refusalReply(invalid(otherFault).problem, operation)
        const body = parseJsonBody(schema, bytes)
        if (!body.ok) return refusalReply(invalid(body.fault).problem, operation)
        const access = await authenticate(presented, guard, slug, arriving)
        if (!access.ok) return problemReply(access.problem)
        const { caller } = access
        return handle({ caller, body: body.value, param, idempotencyKey, exchange: arriving, closed })
      }
    },
  })
}
