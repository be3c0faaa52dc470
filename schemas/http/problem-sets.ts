import type { DocumentedProblem } from './operation.ts'
import type { ProblemService } from './problems.ts'

/** Problem of every operation. */
export const INTERNAL: DocumentedProblem = { code: 'INTERNAL', when: 'internal error' }

/** Problem of every operation that takes the header `Idempotency-Key`. */
export const IDEMPOTENCY_CONFLICT: DocumentedProblem = {
  code: 'IDEMPOTENCY_CONFLICT',
  when: 'the idempotency key was used with another request, or the key that it created is revoked',
}

/** Problems of a body, whatever it contains. Its limit belongs to its operation: see `problemsOf`. */
function bodyProblems(service: ProblemService): DocumentedProblem[] {
  return [
    { code: 'REQUEST_INVALID', service, when: 'a field is missing or breaks its rule; the message names both' },
    { code: 'REQUEST_INVALID', service, status: 408, when: 'the body stopped arriving' },
    { code: 'REQUEST_INVALID', service, status: 415, when: 'the content type or encoding is not supported' },
  ]
}

/** Problems of operations that accept telemetry with a public key. */
export const publicKeyProblems: readonly DocumentedProblem[] = [
  ...bodyProblems('frontier-runtime'),
  { code: 'AUTH_MISSING', when: 'the public key is absent' },
  { code: 'AUTH_PK_INVALID', when: 'the public key is malformed, unknown, revoked or expired' },
  { code: 'PERMISSION_DENIED', when: 'the header Origin is not among the allowed origins of the public key' },
  {
    code: 'INGEST_BACKPRESSURE',
    when: 'the surface is over its share of the queue, the queue is full, or the key is over a quota; retry after the delay',
  },
  INTERNAL,
  { code: 'INGEST_INFRA_UNAVAILABLE', when: 'a dependency failed before the request was on disk; send it again' },
]

/** Problems of operations that a build calls with a secret key. */
export const secretKeyProblems: readonly DocumentedProblem[] = [
  ...bodyProblems('frontier-buildtime'),
  { code: 'AUTH_MISSING', when: 'the secret key is absent, malformed, unknown, revoked or expired' },
  {
    code: 'AUTH_AK_SCOPE_MISMATCH',
    when: 'the secret key lacks the scope release:write, or belongs to another surface than the release',
  },
  {
    code: 'INGEST_BACKPRESSURE',
    service: 'frontier-buildtime',
    when: 'too much work is waiting, or the key is over a quota; retry after the delay',
  },
  INTERNAL,
  {
    code: 'INGEST_INFRA_UNAVAILABLE',
    service: 'frontier-buildtime',
    when: 'a dependency failed; send the same request again',
  },
]

/** The same where the server refuses a stalled body before the route does, so in the name of the gateway. */
function gatewayBodyProblems(service: ProblemService): DocumentedProblem[] {
  return bodyProblems(service).map(problem => (problem.status === 408 ? { ...problem, service: 'gateway' } : problem))
}

/**
 * Returns the problems of operations that a signed-in user, a workload or a workspace key calls. A refusal for a share names
 * the same service as an unavailable store, because a client waits out both.
 */
function callerProblems(notFound: DocumentedProblem, unavailable: DocumentedProblem): DocumentedProblem[] {
  return [
    { code: 'AUTH_MISSING', when: 'the credential is absent, malformed, revoked or expired' },
    { code: 'AUTH_ORG_REQUIRED', when: 'the token has no claim "org"' },
    { code: 'PERMISSION_DENIED', when: 'the caller lacks the required permission' },
    notFound,
    {
      code: 'INGEST_BACKPRESSURE',
      service: unavailable.service ?? 'frontier-runtime',
      when: 'the workspace has more requests in progress than its share; retry after the delay',
    },
    INTERNAL,
    unavailable,
  ]
}

/** Returns the problem of an invalid query parameter. */
const queryFault = (service: ProblemService): DocumentedProblem => ({
  code: 'REQUEST_INVALID',
  service,
  when: 'a query parameter breaks its rule; the message names both',
})

/** Returns the problems of operations that read; `unavailable` states what a failed store prevents. */
export function readProblems(
  unavailable: string,
  notFound = 'the caller is not a member of the workspace',
  service: ProblemService = 'api-analytics',
): DocumentedProblem[] {
  return [
    queryFault(service),
    ...callerProblems(
      { code: 'NOT_FOUND', when: notFound },
      { code: 'INGEST_INFRA_UNAVAILABLE', when: `${unavailable}; retry after the delay` },
    ),
  ]
}

/** Problems of operations that read findings and traces. */
export const findingsProblems = [
  queryFault('api-findings'),
  ...callerProblems(
    { code: 'FINDING_NOT_FOUND', when: 'there is no such finding or trace, or it is no longer retained' },
    { code: 'FINDING_CONTEXT_QUERY_FAILED', when: 'findings are unavailable; retry after the delay' },
  ),
]

const FINDING_CHANGE_REFUSED =
  'the workspace has more requests in progress than its share, or the store of findings is nearly full; retry after the delay'

/** Problems of operations that change findings. */
export const findingChangeProblems: readonly DocumentedProblem[] = [
  ...gatewayBodyProblems('api-findings'),
  ...findingsProblems
    .filter(({ code }) => code !== 'REQUEST_INVALID')
    .map(problem => (problem.code === 'INGEST_BACKPRESSURE' ? { ...problem, when: FINDING_CHANGE_REFUSED } : problem)),
]

/** Problems of operations that read sessions and replays. */
export const sessionsProblems = readProblems(
  'sessions are unavailable',
  'there is no such session, or it is no longer retained',
)

/** Problems of the operation that deletes a release. */
export const releaseProblems = callerProblems(
  { code: 'RELEASE_NOT_FOUND', when: 'there is no such release' },
  {
    code: 'INGEST_INFRA_UNAVAILABLE',
    service: 'frontier-buildtime',
    when: 'releases are unavailable; retry after the delay',
  },
)

/** Problems of operations that read releases. */
export const releasesProblems = [queryFault('api-analytics'), ...releaseProblems]

const traceProblems = callerProblems(
  { code: 'NOT_FOUND', when: 'there is no such trace or span, or it is no longer retained' },
  { code: 'INGEST_INFRA_UNAVAILABLE', when: 'traces are unavailable; retry after the delay' },
)

/** Problems of operations that read traces. */
export const tracesProblems = [queryFault('api-analytics'), ...traceProblems]

/** Problems of operations that read what a body names of traces. */
export const traceBodyProblems = [...gatewayBodyProblems('api-analytics'), ...traceProblems]

/** Problems of operations that read log records. */
export const logsProblems: readonly DocumentedProblem[] = [
  {
    code: 'REQUEST_INVALID',
    service: 'api-analytics',
    when: 'a query parameter breaks its rule, or the search would read too much; the message names both or the remedy',
  },
  ...callerProblems(
    { code: 'NOT_FOUND', when: 'the caller is not a member of the workspace' },
    { code: 'INGEST_INFRA_UNAVAILABLE', when: 'log records are unavailable; retry after the delay' },
  ),
]

/** Problems of operations that read metrics. */
export const metricsProblems = readProblems(
  'metrics are unavailable',
  'there is no such metric with points in the range, or they are no longer retained',
)

/** Problem of a query that is valid and cannot be executed. */
const UNEXECUTABLE: DocumentedProblem = {
  code: 'REQUEST_INVALID',
  service: 'api-analytics',
  status: 422,
  when: 'the query would read or compute too much, or its operands do not match',
}

/** Problems of operations of the interface of Prometheus. */
export const prometheusProblems = [...metricsProblems, UNEXECUTABLE]

/** Problems of the same operations with a form. */
export const prometheusFormProblems = [
  ...gatewayBodyProblems('api-analytics'),
  ...prometheusProblems.filter(({ code, status }) => code !== 'REQUEST_INVALID' || status !== undefined),
]

/** Problems of messages of agents. */
export const mcpProblems: readonly DocumentedProblem[] = [
  ...gatewayBodyProblems('api-analytics'),
  ...callerProblems(
    { code: 'NOT_FOUND', when: 'the caller is not a member of the workspace' },
    { code: 'INGEST_INFRA_UNAVAILABLE', when: 'the credential cannot be checked; retry after the delay' },
  ).map(problem =>
    problem.code === 'PERMISSION_DENIED'
      ? { ...problem, when: 'the caller lacks the required permission, or the request is from a page of a browser' }
      : problem,
  ),
]

/** Problems of the operation that reads a receipt. */
export const receiptsProblems = [
  ...callerProblems(
    { code: 'NOT_FOUND', when: 'there is no such receipt, or it is no longer retained' },
    { code: 'INGEST_INFRA_UNAVAILABLE', when: 'receipts are unavailable; retry after the delay' },
  ),
  { code: 'AUTH_PK_INVALID', when: 'the public key is malformed, unknown, revoked or expired' },
] satisfies DocumentedProblem[]

/** Problems of operations that change surfaces and keys. */
export const workspaceProblems = callerProblems(
  {
    code: 'NOT_FOUND',
    when: 'the resource does not exist in the workspace, or the caller is not a member of the workspace',
  },
  {
    code: 'INGEST_INFRA_UNAVAILABLE',
    when: 'workspaces and keys are unavailable; retry after the delay',
  },
)

/** Problems of operations that list surfaces and keys. */
export const workspaceListProblems = [queryFault('operation'), ...workspaceProblems]

/** Problems of operations that create surfaces and keys. */
export const workspaceCreationProblems: readonly DocumentedProblem[] = [
  ...gatewayBodyProblems('operation'),
  ...workspaceProblems.filter(({ code }) => code !== 'INGEST_BACKPRESSURE'),
  {
    code: 'INGEST_BACKPRESSURE',
    when: 'the server receives too many bodies at once, or its store is nearly full; retry after the delay',
  },
]

/** Problems of operations that replay and purge dead letters. */
export const letterChangeProblems: readonly DocumentedProblem[] = [
  ...workspaceCreationProblems.filter(
    ({ code }) => code !== 'INGEST_BACKPRESSURE' && code !== 'INGEST_INFRA_UNAVAILABLE',
  ),
  {
    code: 'INGEST_BACKPRESSURE',
    when: 'the queues have no room for replays, or too many replays and purges of the workspace run; repeat the request after the delay',
  },
  { code: 'INGEST_INFRA_UNAVAILABLE', when: 'dead letters are unavailable; repeat the request after the delay' },
]
