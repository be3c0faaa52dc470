import type { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { DirectoryMemory } from '../../shared/directory/directory-memory.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from './body-route.ts'
import type { GuardedRouteDeps } from './guarded-route.ts'
import { createdReply, type Outcome, replyOf } from './outcome.ts'
import type { Resource } from './resource.ts'

/** Dependencies of every route that creates or changes something from a body. */
export interface CreationRouteDeps extends Pick<GuardedRouteDeps, 'authenticate' | 'logger'> {
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
}

/** The part of a creating route that its operation does not state. */
interface CreationRoute<S extends z.ZodType, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. */
  readonly create: (request: CreationRequest<z.infer<S>>) => Promise<Outcome<T>>
  /** Makes the reply of the value; a JSON reply with status 201 unless given. */
  readonly reply?: (value: T) => Reply
}

/** A request whose caller is accepted and whose body is valid. */
type CreationRequest<B> = Pick<BodyRequest<B>, 'caller' | 'body' | 'param'>

/** Returns the route of an operation that creates or changes something from a JSON body. */
export function creationRoute<S extends z.ZodType, T>(
  { authenticate, logger, directoryMemory }: CreationRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, create, reply = createdReply }: CreationRoute<S, T>,
): Route {
  return bodyRoute(authenticate, operation, {
    resource,
    body: schema,
    refuse: () => directoryMemory.refuse(),
    handle({ caller, body, param, exchange }) {
      const { unavailable } = resource
      return replyOf(() => create({ caller, body, param }), {
        operation,
        reply,
        unavailable,
        logger,
        request: exchange,
      })
    },
  })
}
