import type { DocumentedProblem } from './operation.ts'
import type { ProblemService } from './problems.ts'

/** Problems that operations have in common, in the name of the part of the service that each belongs to. */

export const INTERNAL: DocumentedProblem = { code: 'INTERNAL', when: 'the request failed for a reason of ours' }

/** Problems of a body, whatever it contains. Its limit belongs to its operation: see `problemsOf`. */
function bodyProblems(service: ProblemService): DocumentedProblem[] {
  return [
    { code: 'REQUEST_INVALID', service, when: 'a field is missing or breaks its rule; the message names both' },
    { code: 'REQUEST_INVALID', service, status: 408, when: 'the body stopped coming' },
    { code: 'REQUEST_INVALID', service, status: 415, when: 'the content type or encoding is not one that is taken' },
  ]
}

/** Of operations that take telemetry with a public key. */
export const publicKeyProblems: readonly DocumentedProblem[] = [
  ...bodyProblems('frontier-runtime'),
  { code: 'AUTH_MISSING', when: 'the public key is absent' },
  { code: 'AUTH_PK_INVALID', when: 'the public key is malformed, unknown, revoked or expired' },
  { code: 'INGEST_BACKPRESSURE', when: 'the queue is over its depth or its bytes' },
  INTERNAL,
  { code: 'INGEST_INFRA_UNAVAILABLE', when: 'a dependency failed before the request was on disk; send it again' },
]

/** Of operations that a build calls with a secret key. */
export const secretKeyProblems: readonly DocumentedProblem[] = [
  ...bodyProblems('frontier-buildtime'),
  { code: 'AUTH_MISSING', when: 'the secret key is absent, malformed, unknown, revoked or expired' },
  {
    code: 'AUTH_AK_SCOPE_MISMATCH',
    when: 'the secret key lacks the scope release:write, or is of another surface than the release',
  },
  { code: 'INGEST_BACKPRESSURE', service: 'frontier-buildtime', when: 'more is waiting to be worked on than may' },
  INTERNAL,
  {
    code: 'INGEST_INFRA_UNAVAILABLE',
    service: 'frontier-buildtime',
    when: 'a dependency failed; send the same request again',
  },
]

/** Of what a signed-in user or a key of a workspace asks for. */
function callerProblems(notFound: DocumentedProblem, unavailable: DocumentedProblem): DocumentedProblem[] {
  return [
    { code: 'REQUEST_INVALID', isOfPath: true, when: 'a parameter of the path is not valid percent-encoding' },
    { code: 'AUTH_MISSING', when: 'the credential is absent, malformed, revoked or expired' },
    { code: 'AUTH_ORG_REQUIRED', when: 'the token has no claim "org"' },
    { code: 'PERMISSION_DENIED', when: 'the caller lacks the permission that is needed' },
    notFound,
    INTERNAL,
    unavailable,
  ]
}

const queryFault = (service: ProblemService): DocumentedProblem => ({
  code: 'REQUEST_INVALID',
  service,
  when: 'a query parameter breaks its rule; the message names both',
})

export const findingsProblems = [
  queryFault('api-findings'),
  ...callerProblems(
    { code: 'FINDING_NOT_FOUND', when: 'there is no such finding, or nothing of what is asked for is retained' },
    { code: 'FINDING_CONTEXT_QUERY_FAILED', when: 'the findings cannot be read at the moment' },
  ),
]

export const sessionsProblems = [
  queryFault('api-analytics'),
  ...callerProblems(
    { code: 'NOT_FOUND', when: 'there is no such session, or nothing of it is retained' },
    { code: 'INGEST_INFRA_UNAVAILABLE', service: 'api-analytics', when: 'sessions cannot be read at the moment' },
  ),
]

export const releasesProblems = [
  queryFault('api-analytics'),
  ...callerProblems(
    { code: 'RELEASE_NOT_FOUND', when: 'there is no such release' },
    { code: 'INGEST_INFRA_UNAVAILABLE', service: 'api-analytics', when: 'releases cannot be read at the moment' },
  ),
]

export const receiptsProblems = [
  ...callerProblems(
    { code: 'NOT_FOUND', when: 'there is no such receipt, or it is no longer retained' },
    { code: 'INGEST_INFRA_UNAVAILABLE', when: 'receipts cannot be read at the moment' },
  ),
  { code: 'AUTH_PK_INVALID', when: 'the public key is malformed, unknown, revoked or expired' },
] satisfies DocumentedProblem[]

/** Of what changes surfaces and keys. */
export const workspaceProblems = callerProblems(
  { code: 'NOT_FOUND', when: 'there is no such thing in the workspace, or no such workspace for the caller' },
  {
    code: 'INGEST_INFRA_UNAVAILABLE',
    service: 'operation',
    when: 'workspaces and keys cannot be read or changed at the moment',
  },
)

/** Of what lists them. */
export const workspaceListProblems = [queryFault('operation'), ...workspaceProblems]

/** Of what makes them. */
export const workspaceCreationProblems: readonly DocumentedProblem[] = [
  ...bodyProblems('operation').map(problem =>
    // Who asks is not known to be anybody's yet: the server ends it by itself.
    problem.status === 408 ? { ...problem, service: 'gateway' as const } : problem,
  ),
  ...workspaceProblems,
  { code: 'INGEST_BACKPRESSURE', when: 'more bodies are being received than the server may hold' },
]
