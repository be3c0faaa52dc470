import type { ProblemCode } from '../problems.ts'
import type { PrometheusProblem } from './schemas.ts'

/** Error types of Prometheus by the code of a problem. */
const ERROR_TYPES: Partial<Record<ProblemCode, string>> = {
  AUTH_MISSING: 'unauthorized',
  AUTH_ORG_REQUIRED: 'forbidden',
  PERMISSION_DENIED: 'forbidden',
  REQUEST_INVALID: 'bad_data',
  NOT_FOUND: 'not_found',
  METHOD_NOT_ALLOWED: 'bad_data',
  INTERNAL: 'internal',
}

/** Status of a query that is valid and cannot be executed. */
export const UNPROCESSABLE = 422

/** Returns the body of a problem as clients of Prometheus read it. */
export function prometheusProblem(
  { code, message }: { readonly code: ProblemCode; readonly message: string },
  status?: number,
): PrometheusProblem {
  const errorType = status === UNPROCESSABLE ? 'execution' : (ERROR_TYPES[code] ?? 'unavailable')
  return { status: 'error', errorType, error: message, code }
}
