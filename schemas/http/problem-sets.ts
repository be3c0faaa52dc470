import type { DocumentedProblem } from './operation.ts'
import type { ProblemCode } from './problems.ts'

const problemsWith = (...codes: ProblemCode[]): DocumentedProblem[] => codes.map(code => ({ code }))

/** Problem of every operation that takes the header `Idempotency-Key`. */
export const IDEMPOTENCY_CONFLICT: DocumentedProblem = { code: 'IDEMPOTENCY_CONFLICT' }

/** Problems of operations that accept telemetry with a public key. */
export const publicKeyProblems = problemsWith(
  'AUTH_MISSING',
  'AUTH_PK_INVALID',
  'PERMISSION_DENIED',
  'INGEST_BACKPRESSURE',
  'INGEST_INFRA_UNAVAILABLE',
)

/** Problems of operations that a build calls with a secret key. */
export const secretKeyProblems = problemsWith(
  'AUTH_MISSING',
  'AUTH_AK_SCOPE_MISMATCH',
  'INGEST_BACKPRESSURE',
  'INGEST_INFRA_UNAVAILABLE',
)

/** Problems of operations that a signed-in user, a workload or a workspace key calls. */
function problemsOfCallers(notFound: ProblemCode, unavailable: ProblemCode): DocumentedProblem[] {
  return problemsWith(
    ...(['AUTH_MISSING', 'AUTH_ORG_REQUIRED', 'PERMISSION_DENIED'] as const),
    ...[notFound, 'INGEST_BACKPRESSURE' as const, unavailable],
  )
}

/** Problems of most operations that read or manage. */
export const callerProblems = problemsOfCallers('NOT_FOUND', 'INGEST_INFRA_UNAVAILABLE')

/** Problems of operations on findings and their traces. */
export const findingsProblems = problemsOfCallers('FINDING_NOT_FOUND', 'FINDING_CONTEXT_QUERY_FAILED')

/** Problems of operations on releases. */
export const releaseProblems = problemsOfCallers('RELEASE_NOT_FOUND', 'INGEST_INFRA_UNAVAILABLE')

/** Problems of operations of the interface of Prometheus. */
export const prometheusProblems: readonly DocumentedProblem[] = [
  ...callerProblems,
  { code: 'REQUEST_INVALID', status: 422 },
]

/** Problems of the operation that reads a receipt. */
export const receiptsProblems = [...callerProblems, ...problemsWith('AUTH_PK_INVALID')]
