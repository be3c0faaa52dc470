import type { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { DirectoryMemory } from '../../shared/directory/directory-memory.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { problemReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { Caller } from '../auth/caller.ts'
import { type GuardedRouteDeps, guardOf, namesNothing, pathParameters, workspaceSlugOf } from './guarded-route.ts'
import { createdReply, invalid, type Outcome, refusalReply, replyOf } from './outcome.ts'
import type { Resource } from './resource.ts'

/** Dependencies of every route that creates or changes something from a body. */
export interface CreationRouteDeps extends Pick<GuardedRouteDeps, 'authenticate' | 'logger'> {
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
}

/** The part of a creating route that its operation does not state. */
export interface CreationRoute<S extends z.ZodType, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. */
  readonly create: (request: CreationRequest<z.infer<S>>) => Promise<Outcome<T>>
  /** Makes the reply of the value; a JSON reply with status 201 unless given. */
  readonly reply?: (value: T) => Reply
}

/** A request whose caller is accepted and whose body is valid. */
export interface CreationRequest<B> {
  readonly caller: Caller
  readonly body: B
  readonly param: (name: string) => string
}

/**
 * Returns the route of an operation that creates or changes something from a JSON body. The body is received only after the
 * credential is accepted. The credential is checked again when the body is complete, because it may have been revoked while a
 * slow body arrived.
 */
export function creationRoute<S extends z.ZodType, T>(
  { authenticate, logger, directoryMemory }: CreationRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, create, reply = createdReply }: CreationRoute<S, T>,
): Route {
  const guard = guardOf(operation, resource)
  const paramsOf = pathParameters(operation)
  return operationRoute(operation, {
    async accept(head, arriving) {
      const type = bodyTypeOf(head)
      const authorization = head.header('authorization')
      const param = paramsOf(head)
      const slug = workspaceSlugOf(operation, param)
      const accepted = await authenticate(authorization, guard, slug, arriving)
      if (!accepted.ok) return problemReply(accepted.problem)
      arriving.belongsTo(accepted.caller.workspaceId)
      if (namesNothing(operation, param)) return problemReply(resource.notFound)
      return async bytes => {
        const fault = directoryMemory.refuse() ?? bodyTypeFault(type, ['application/json'])
        if (fault) return refusalReply(fault, operation)
        const body = parseJsonBody(schema, bytes)
        if (!body.ok) return refusalReply(invalid(body.fault).problem, operation)
        const access = await authenticate(authorization, guard, slug, arriving)
        if (!access.ok) return problemReply(access.problem)
        const request = { caller: access.caller, body: body.value, param }
        const { unavailable } = resource
        return replyOf(() => create(request), { operation, reply, unavailable, logger, request: arriving })
      }
    },
  })
}
