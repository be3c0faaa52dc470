import type { Problem } from '../../../schemas/http/problems.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type IdentifiedRequest, problemReply, type Reply, type Route } from '../route.ts'

/** Refusal of a body that brings no more data. */
export const bodyStalled: Problem = { code: 'REQUEST_INVALID', status: 408, message: 'the body stopped arriving' }

/** Refusal of a body that brings data too slowly. */
export const bodyTooSlow: Problem = {
  code: 'REQUEST_INVALID',
  status: 408,
  message: 'the body arrived too slowly: after 30 seconds, send at least 16 KiB per second',
}

/** Refusal of a body that exceeds the memory of its sender. */
export const tooMuchHeld: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'bodies from this sender take too much memory of the server at once; retry after the delay',
  retryAfterSeconds: 1,
}

/** Refusal of a body of a sender from whom too many others have not arrived completely. */
export const tooManyArriving: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'too many bodies from this sender are arriving at once; retry after the delay',
  retryAfterSeconds: 1,
}

/** Limits of the server itself, apart from those of routes. */
export const SERVER_LIMITS = ['body_memory', 'arriving_bodies', 'body_pace', 'connections'] as const
/** Name of a limit of the server. */
export type ServerLimit = (typeof SERVER_LIMITS)[number]

/** The limit that a refusal of the server is for. */
export const LIMIT_OF_PROBLEM: ReadonlyMap<Problem, ServerLimit> = new Map([
  [tooMuchHeld, 'body_memory'],
  [tooManyArriving, 'arriving_bodies'],
  [bodyStalled, 'body_pace'],
  [bodyTooSlow, 'body_pace'],
])

/** Returns the refusal of a body over the limit of its route. */
export function overLimit(route: Route): Problem {
  const message = `the body is over the limit of ${route.bodyLimitBytes} bytes`
  return route.overLimit ?? { code: 'REQUEST_INVALID', status: 413, message }
}

/** Returns the reply of a problem as the route renders it, or the common one if that throws. */
export function renderProblem(route: Route, problem: Problem, logger: Logger, request?: IdentifiedRequest): Reply {
  try {
    if (route.renderProblem) return route.renderProblem(problem)
  } catch (error) {
    logFault(route, error, logger, request)
  }
  return problemReply(problem)
}

/** The problem of a request whose route has thrown. The error itself goes to the log only. */
export const INTERNAL_ERROR: Problem = { code: 'INTERNAL', message: 'internal error' }

/** Logs an error with the pattern of the route. Path and query are left out, because they may contain credentials. */
export function logFault(
  route: Pick<Route, 'method' | 'path'>,
  error: unknown,
  logger: Logger,
  request?: IdentifiedRequest,
): void {
  const { method, path } = route
  logger.error({ requestId: request?.requestId, method, route: path, err: error }, 'a request failed')
}
