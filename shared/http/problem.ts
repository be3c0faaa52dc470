import type { Problem } from '../../schemas/http/problems.ts'
import type { Logger } from '../runtime/logger.ts'
import { MalformedRequestError } from './request-head.ts'
import { problemReply, type Reply, type Route } from './route.ts'

/** The problems that the server finds by itself, whatever the route. */
export const bodyStalled: Problem = { code: 'REQUEST_INVALID', status: 408, message: 'the body stopped coming' }

export const tooMuchHeld: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'more bodies are being received than this server may hold',
  retryAfterSeconds: 1,
}

export function overLimit(route: Route): Problem {
  const message = `the body is over the limit of ${route.bodyLimitBytes} bytes`
  return route.overLimit ?? { code: 'REQUEST_INVALID', status: 413, message }
}

/** In the route's own wording, or in the common one when that fails too: a request is always answered. */
export function renderProblem(route: Route, problem: Problem, logger: Logger): Reply {
  try {
    if (route.renderProblem) return route.renderProblem(problem)
  } catch (error) {
    logFault(route, error, logger)
  }
  return problemReply(problem)
}

/** The answer to anything that a route has thrown. What it was stays in the log. */
export function faultReply(route: Route, error: unknown, logger: Logger): Reply {
  if (error instanceof MalformedRequestError) {
    return renderProblem(route, { code: 'REQUEST_INVALID', message: error.message }, logger)
  }
  logFault(route, error, logger)
  return renderProblem(route, { code: 'INTERNAL', message: 'the request failed for a reason of ours' }, logger)
}

/** Names the pattern, never the path or the query that came: those may hold credentials. */
export function logFault(route: Route, error: unknown, logger: Logger): void {
  logger.error({ method: route.method, route: route.path, err: error }, 'a request failed')
}
