import { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { otherParameterFault, parseQuery } from '../../shared/http/parse-query.ts'
import {
  type IdentifiedRequest,
  problemReply,
  type Reply,
  type RequestHead,
  type Route,
} from '../../shared/http/route.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Authenticate, Caller, Guard } from '../auth/caller.ts'
import { presentedBy } from '../auth/protected-resource.ts'
import { invalid, type Outcome, okReply, refusalReply, renderOutcome, replyUnlessUnavailable } from './outcome.ts'
import { acceptsGzip } from './packed-json.ts'
import { type ReadShares, withinShares } from './read-shares.ts'
import type { Resource } from './resource.ts'

/** Dependencies that every guarded route needs, besides those of its own operation uses. */
export interface GuardedRouteDeps {
  readonly authenticate: Authenticate
  readonly logger: Logger
  /** How long a whole request may take. */
  readonly queryTimeoutMs: number
  readonly shares: ReadShares
}

/** The part of a route that its operation does not state. */
interface GuardedRoute<Q extends z.ZodObject, T> {
  readonly resource: Resource
  /** Schema of the query parameters; no parameters unless given. */
  readonly query?: Q
  /** Runs for an accepted caller with a valid query. A store that fails throws a TransientError or a PermanentError. */
  readonly run: (request: GuardedRequest<z.infer<Q>>) => Promise<Outcome<T>>
  /** Makes the reply of the value; a JSON reply with status 200 unless given. */
  readonly reply?: (value: T) => Reply
}

/** A request whose caller is accepted and whose query is valid. */
export interface GuardedRequest<Q> {
  readonly caller: Caller
  /** The id of the caller's workspace, in which all reads and writes happen. */
  readonly workspaceId: string
  readonly query: Q
  /** Returns a parameter of the path, which may have any text. */
  readonly param: (name: string) => string
  /** Fires when the deadline of the request has passed or its client has left. */
  readonly deadline: AbortSignal
  /** Fires when the client leaves before the response is complete, which may be after the deadline. */
  readonly closed: AbortSignal
  /** Whether the client reads a response that is compressed with gzip. */
  readonly acceptsGzip: boolean
  /** Media types that the client accepts, as sent. */
  readonly accept: string | undefined
  /** The request as the log names it. */
  readonly exchange: IdentifiedRequest
}

/** A read of an accepted caller, whichever interface it came by. */
export type CallerRead<Q> = Pick<GuardedRequest<Q>, 'workspaceId' | 'query' | 'deadline'>

const NO_PARAMETERS = z.object({})

/**
 * Returns the route of an operation without a body. The order of checks is: credential, permission, query, and then the
 * checks of `run`.
 */
export function guardedRoute<T, Q extends z.ZodObject = typeof NO_PARAMETERS>(
  { authenticate, logger, queryTimeoutMs, shares }: GuardedRouteDeps,
  operation: PermittedOperation,
  { resource, query: schema = NO_PARAMETERS as unknown as Q, run, reply = okReply }: GuardedRoute<Q, T>,
): Route {
  const guard = guardOf(operation, resource)
  const parameterNames = Object.keys(schema.shape)
  const paramsOf = pathParameters(operation)
  return operationRoute(operation, {
    async accept(head, exchange) {
      const closed = head.closed()
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const param = paramsOf(head)
      const accept = head.header('accept')
      const readsGzip = acceptsGzip(head.header('accept-encoding'))
      const otherFault = otherParameterFault(operation, head.rawQuery(), parameterNames)
      const parameters = Object.fromEntries(parameterNames.map(name => [name, head.query(name)]))
      const access = await authenticate(presentedBy(head), guard, workspaceSlugOf(operation, param), exchange)
      if (!access.ok) return problemReply(access.problem)
      if (namesNothing(operation, param)) return problemReply(resource.notFound)
      if (otherFault !== undefined) return refusalReply(invalid(otherFault).problem, operation)
      const query = parseQuery(schema, parameters)
      if (!query.ok) return refusalReply(invalid(query.fault).problem, operation)
      const { caller } = access
      const { workspaceId } = caller
      const request = {
        ...{ caller, workspaceId, query: query.value, param, deadline, closed, exchange, accept },
        acceptsGzip: readsGzip,
      }
      const { unavailable } = resource
      const makeReply = async () => renderOutcome(await run(request), { operation, reply })
      const shared = { owner: workspaceId, operation, signal: deadline }
      return replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
        operation,
        unavailable,
        logger,
        request: exchange,
        closed,
      })
    },
  })
}

/** Derives from an operation how its callers are checked. */
export function guardOf(operation: PermittedOperation, { notFound, unavailable }: Resource): Guard {
  const { permission, credentials, path } = operation
  const resourcePath = path === '/mcp' ? path : ''
  return { permissions: [permission], credentials, resourcePath, notFound, unavailable }
}

/** Returns a function that copies the path parameters of a request, because the head is readable only until the first await. */
export function pathParameters({ parameters }: PermittedOperation): (head: RequestHead) => (name: string) => string {
  const names = Object.keys(parameters?.path?.shape ?? {})
  return head => {
    const values = new Map(names.map(name => [name, head.param(name)]))
    return name => {
      const value = values.get(name)
      if (value === undefined) throw new Error(`the path has no parameter ${name}`)
      return value
    }
  }
}

/** Reports whether a parameter of the path could not be decoded, so that it names no resource. */
export function namesNothing({ parameters }: PermittedOperation, param: (name: string) => string): boolean {
  return Object.keys(parameters?.path?.shape ?? {}).some(name => param(name) === '')
}

/** Returns the slug of the workspace that the path names, or undefined if it names none. */
export function workspaceSlugOf(
  { parameters }: PermittedOperation,
  param: (name: string) => string,
): string | undefined {
  return parameters?.path && 'workspaceSlug' in parameters.path.shape ? param('workspaceSlug') : undefined
}
