import { z } from 'zod'

/** Every problem by its code, with its HTTP status and the part of the service it names (docs/api/requests.md#problems). */
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

/** Code of a problem. */
export type ProblemCode = keyof typeof PROBLEMS

/** Parts of the service that a problem may name (docs/api/requests.md#problems). */
const PROBLEM_SERVICES = [
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
/** Part of the service that a problem names. */
export type ProblemService = (typeof PROBLEM_SERVICES)[number]

/** Body of every problem, except those of OTLP exports (docs/api/otlp.md#drain). */
export const problemSchema = z
  .strictObject({
    code: z
      .enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]])
      .meta({ id: 'ProblemCode', description: 'The kind of problem, for programs.' }),
    message: z.string().meta({ description: 'Names the field and the rule it breaks, for people.' }),
    service: z
      .enum(PROBLEM_SERVICES)
      .meta({ id: 'ProblemService', description: 'The part of the service that refused the request.' }),
  })
  .meta({ id: 'Problem', description: 'A refusal of a request.' })

/** A refusal on its way to the client. `status` and `service` override those of the table. */
export interface Problem {
  readonly code: ProblemCode
  /** Names the field and the rule it breaks. Never contains a secret or a stack. */
  readonly message: string
  readonly status?: number
  readonly service?: ProblemService
  /** Credential that an unauthenticated request must send (`AUTH_MISSING`). Unless given, a bearer token that was sent is bad. */
  readonly missing?: 'bearer' | 'publicKey'
  /** Address of the metadata by which a tool can sign its user in, for the challenge. It was made from checked parts. */
  readonly resourceMetadata?: string
  /** Whole seconds, sent as `Retry-After`. */
  readonly retryAfterSeconds?: number
}
