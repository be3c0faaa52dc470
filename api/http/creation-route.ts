import type { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { NewCreation } from '../../shared/directory/creations.ts'
import type { DirectoryMemory } from '../../shared/directory/directory-memory.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from './body-route.ts'
import type { GuardedRouteDeps } from './guarded-route.ts'
import { createOnce, creationOf, type Repetition } from './idempotency.ts'
import { createdReply, type Outcome, replyOf } from './outcome.ts'
import type { Resource } from './resource.ts'

/** Dependencies of every route that creates or changes something from a body. */
export interface CreationRouteDeps extends Pick<GuardedRouteDeps, 'authenticate' | 'logger'> {
  readonly now: () => number
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
}

/** The part of a creating route that its operation does not state. */
interface CreationRoute<S extends z.ZodType, T> extends Repetition<z.infer<S>, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. */
  readonly create: (request: CreationRequest<z.infer<S>>) => Promise<Outcome<T>>
  /** Makes the reply of the value; a JSON reply with status 201 unless given. */
  readonly reply?: (value: T) => Reply
}

/** A request whose caller is accepted and whose body is valid. */
interface CreationRequest<B> extends Pick<BodyRequest<B>, 'caller' | 'body' | 'param'> {
  /** Undefined for a request that the client cannot repeat (docs/api/requests.md#idempotency). */
  readonly creation: NewCreation | undefined
}

/** Returns the route of an operation that creates or changes something from a JSON body. */
export function creationRoute<S extends z.ZodType, T>(
  { authenticate, logger, directoryMemory, now }: CreationRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, create, reply = createdReply, ...repetition }: CreationRoute<S, T>,
): Route {
  return bodyRoute(authenticate, operation, {
    resource,
    body: schema,
    refuse: () => directoryMemory.refuse(),
    handle(request) {
      const { caller, body, param, exchange } = request
      const { unavailable } = resource
      const run = async (): Promise<Outcome<T>> => {
        const creation = creationOf(operation, request, now())
        if (!creation.ok) return creation
        const { value } = creation
        return createOnce(value, body, () => create({ caller, body, param, creation: value }), repetition)
      }
      return replyOf(run, {
        operation,
        reply,
        unavailable,
        logger,
        request: exchange,
      })
    },
  })
}
