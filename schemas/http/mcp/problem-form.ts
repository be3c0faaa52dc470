import type { ProblemCode } from '../problems.ts'
import type { McpProblem } from './schemas.ts'

/** Codes of JSON-RPC by the code of a problem. Those of all others are -32000, the first that servers may choose. */
const ERROR_CODES: Partial<Record<ProblemCode, number>> = { REQUEST_INVALID: -32_600, INTERNAL: -32_603 }
const SERVER_ERROR = -32_000

/** Returns the body of a problem as clients of the Model Context Protocol read it: an error without the id of a request. */
export function mcpProblem({ code, message }: { readonly code: ProblemCode; readonly message: string }): McpProblem {
  return { jsonrpc: '2.0', error: { code: ERROR_CODES[code] ?? SERVER_ERROR, message, data: { code } } }
}
