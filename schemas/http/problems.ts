import { z } from 'zod'

/** Every problem the service answers with: its code, its HTTP status and the part of the service it names (spec section 7). */
export const PROBLEMS = {
  AUTH_MISSING: { status: 401, service: 'frontier-auth' },
  AUTH_PK_INVALID: { status: 401, service: 'frontier-auth' },
  AUTH_AK_SCOPE_MISMATCH: { status: 403, service: 'frontier-auth' },
  AUTH_ORG_REQUIRED: { status: 403, service: 'frontier-auth' },
  RELEASE_NOT_FOUND: { status: 404, service: 'frontier-buildtime' },
  RELEASE_UPLOAD_CONFLICT: { status: 409, service: 'frontier-buildtime' },
  RELEASE_SIGN_FILE_TOO_LARGE: { status: 413, service: 'frontier-buildtime' },
  REPLAY_UPLOAD_REJECTED: { status: 400, service: 'frontier-runtime' },
  FINDING_NOT_FOUND: { status: 404, service: 'api-findings' },
  FINDING_CONTEXT_QUERY_FAILED: { status: 503, service: 'api-findings' },
  INGEST_BACKPRESSURE: { status: 429, service: 'frontier-runtime' },
  INGEST_INFRA_UNAVAILABLE: { status: 503, service: 'frontier-runtime' },
  REQUEST_INVALID: { status: 400, service: 'gateway' },
  NOT_FOUND: { status: 404, service: 'gateway' },
  METHOD_NOT_ALLOWED: { status: 405, service: 'gateway' },
  PERMISSION_DENIED: { status: 403, service: 'frontier-auth' },
  IDEMPOTENCY_CONFLICT: { status: 409, service: 'operation' },
  INTERNAL: { status: 500, service: 'gateway' },
} as const satisfies Record<string, { status: number; service: ProblemService }>

export type ProblemCode = keyof typeof PROBLEMS

/** The parts of the service that a problem may name (spec section 7). */
export const PROBLEM_SERVICES = [
  'collector',
  'gateway',
  'operation',
  'intelligence',
  'frontier-auth',
  'frontier-drain',
  'frontier-runtime',
  'frontier-buildtime',
  'api-analytics',
  'api-findings',
  'api-updates',
] as const
export type ProblemService = (typeof PROBLEM_SERVICES)[number]

/** The body of every problem but those of 4.4. */
export const problemSchema = z
  .strictObject({
    code: z
      .enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]])
      .meta({ id: 'ProblemCode', description: 'What is wrong, for programs.' }),
    message: z.string().meta({ description: 'Names the field and the rule it broke, for people.' }),
    service: z
      .enum(PROBLEM_SERVICES)
      .meta({ id: 'ProblemService', description: 'The part of the service that has refused.' }),
  })
  .meta({ id: 'Problem', description: 'A refusal.' })

/** A refusal on its way to the client. `status` and `service` override the table where an endpoint decides otherwise. */
export interface Problem {
  readonly code: ProblemCode
  /** Names the field and the rule it broke; never a secret, never a stack. */
  readonly message: string
  readonly status?: number
  readonly service?: ProblemService
  /** Whole seconds, sent as `Retry-After`. */
  readonly retryAfterSeconds?: number
}
