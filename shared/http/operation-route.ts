import { overLimitOf, type RoutedOperation } from '../../schemas/http/operation.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { Route } from './route.ts'

/** The behaviour of a route: everything that its operation does not state. */
type RouteBehaviour = Pick<Route, 'accept' | 'renderProblem'>

/** Returns the route of an operation. Method, path, CORS and body limit come from the operation alone. */
export function operationRoute(operation: RoutedOperation, { accept, renderProblem }: RouteBehaviour): Route {
  const { method, path, cors = false, body } = operation
  return {
    method,
    path,
    cors,
    bodyLimitBytes: body?.limitBytes ?? 0,
    overLimit: overLimitProblem(operation),
    renderProblem,
    accept,
  }
}

/** Returns the refusal of a body over the limit, with the operation's advice. */
function overLimitProblem(operation: RoutedOperation): Problem | undefined {
  const advice = operation.body?.overLimitAdvice
  const overLimit = overLimitOf(operation)
  return overLimit && advice !== undefined ? { ...overLimit, message: `${overLimit.message}; ${advice}` } : overLimit
}
