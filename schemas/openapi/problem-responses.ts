import type { ZodOpenApiResponseObject } from 'zod-openapi'
import { type DocumentedProblem, type Operation, problemsOf } from '../http/operation.ts'
import { PROBLEMS, type ProblemCode } from '../http/problems.ts'
import { headersOf } from './headers.ts'

/** Schema of a body that is bytes. */
export const BYTES = { type: 'string', format: 'binary' } as const

/** The condition of each problem. It is the same wherever a problem occurs, so that responses are shared. */
const CONDITIONS: Readonly<Record<ProblemCode, string>> = {
  AUTH_MISSING: 'the credential is absent, malformed, unknown, revoked or expired, or of a kind that is not taken here',
  AUTH_PK_INVALID: 'the public key is malformed, unknown, revoked or expired',
  AUTH_AK_SCOPE_MISMATCH: 'the key lacks the scope release:write, or the release belongs to another surface',
  AUTH_ORG_REQUIRED: 'the token has no claim "org"',
  RELEASE_NOT_FOUND: 'there is no such release, or the caller is not a member of the workspace',
  RELEASE_UPLOAD_CONFLICT: 'the part was sent before with other bytes, or its map is in use',
  RELEASE_SIGN_FILE_TOO_LARGE: 'a file, or a part of one, is larger than allowed',
  REPLAY_UPLOAD_REJECTED:
    'the body is empty or no recording, it is not gzip as announced, or the session id is invalid',
  FINDING_NOT_FOUND: 'there is no such finding or trace, or the caller is not a member of the workspace',
  FINDING_CONTEXT_QUERY_FAILED: 'findings are unavailable; retry after the delay',
  INGEST_BACKPRESSURE:
    'too much work waits for the sender or the service, or a quota is used up; retry after the delay',
  INGEST_INFRA_UNAVAILABLE: 'a dependency failed; send the same request again after the delay',
  REQUEST_INVALID: 'a parameter or a field is absent, unknown or breaks its rule; the message names both',
  NOT_FOUND: 'there is no such resource, or the caller is not a member of the workspace',
  METHOD_NOT_ALLOWED: 'the path does not support this method',
  PERMISSION_DENIED: 'the caller lacks the permission, or the page has an origin that is not allowed',
  IDEMPOTENCY_CONFLICT: 'the idempotency key was used with another request',
  INTERNAL: 'internal error',
}

/** Conditions of problems with another status than theirs. */
const OF_STATUS: Readonly<Record<number, string>> = {
  408: 'the body stopped arriving, or arrived too slowly',
  410: 'a chunk of the recording is lost; the message names it',
  413: 'the body is over the limit',
  415: 'the content type or the encoding of the body is not supported',
  422: 'the query would read or compute too much, or its operands do not match',
}

/** Returns the responses of an operation's problems, one per status. */
export function problemResponses(operation: Operation): Record<`${4 | 5}${string}`, ZodOpenApiResponseObject> {
  const problems = problemsOf(operation)
  const statuses = [...new Set(problems.map(statusOf))].sort((a, b) => a - b)
  const responses = statuses.map(status => {
    const those = problems.filter(problem => statusOf(problem) === status)
    return [status, responseOf(operation, status, those)]
  })
  const { query } = operation.parameters ?? {}
  return Object.fromEntries([...responses, ...(query ? [[431, HEAD_TOO_LARGE]] : [])])
}

/** The refusal of the HTTP server itself, which comes before any route. Its body is a page of that server. */
const HEAD_TOO_LARGE: ZodOpenApiResponseObject = {
  description: 'The request line and the headers have more than 16 KiB together.',
}

function responseOf(
  operation: Operation,
  status: number,
  problems: readonly DocumentedProblem[],
): ZodOpenApiResponseObject {
  const { problemForm } = operation
  return {
    description: problems.map(({ code }) => `\`${code}\`: ${OF_STATUS[status] ?? CONDITIONS[code]}.`).join(' '),
    ...headersOf(operation, status),
    content: {
      'application/json': { schema: problemForm?.schema ?? { $ref: '#/components/schemas/Problem' } },
      ...(problemForm?.otherType !== undefined && { [problemForm.otherType]: { schema: BYTES } }),
    },
  }
}

function statusOf({ code, status }: DocumentedProblem): number {
  return status ?? PROBLEMS[code].status
}
