import { z } from 'zod'
import { SIGNALS } from '../queues/names.ts'
import { PUBLIC_KEY } from './credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION } from './example-values.ts'
import { EXPORT_BYTES, EXPORT_DECOMPRESSED_BYTES, formatBytes } from './limits.ts'
import type { Operation } from './operation.ts'
import { publicKeyProblems } from './problem-sets.ts'
import type { Problem, ProblemCode } from './problems.ts'
import { pageRequestQuery } from './sessions/page-request.ts'

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })

/** An OTLP export of one failed span with an exception, in JSON. */
export const EXAMPLE_EXPORT = {
  resourceSpans: [
    {
      resource: {
        attributes: [text('service.name', EXAMPLE.serviceName), text('service.version', EXAMPLE.version)],
      },
      scopeSpans: [
        {
          spans: [
            {
              traceId: EXAMPLE.traceId,
              spanId: EXAMPLE.spanId,
              name: 'GET /cart',
              kind: 2,
              startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
              endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
              attributes: [text('session.id', EXAMPLE.sessionId), text('http.route', '/cart')],
              events: [
                {
                  name: 'exception',
                  timeUnixNano: `${EXAMPLE.recordedAtMs + 41}000000`,
                  attributes: [
                    text('exception.type', EXAMPLE_EXCEPTION.type),
                    text('exception.message', EXAMPLE_EXCEPTION.message),
                    text('exception.stacktrace', EXAMPLE_EXCEPTION.stacktrace),
                  ],
                },
              ],
              status: { code: 2, message: EXAMPLE_EXCEPTION.message },
            },
          ],
        },
      ],
    },
  ],
} as const

/** The same export in protobuf, as base64. */
export const EXAMPLE_EXPORT_BASE64 =
  'CpsDCjQKFgoMc2VydmljZS5uYW1lEgYKBHNob3AKGgoPc2VydmljZS52ZXJzaW9uEgcKBTEuNC4wEuICEt8CChBbjv/3mAOBA9JptjOBP8YMEgju4Zt+w8GxdCoJR0VUIC9jYXJ0MAI5AADzI4Rb1xhBgN5zJoRb1xhKGQoKc2Vzc2lvbi5pZBILCglzZXNzaW9uLTFKFQoKaHR0cC5yb3V0ZRIHCgUvY2FydFrYAQlAnGQmhFvXGBIJZXhjZXB0aW9uGiIKDmV4Y2VwdGlvbi50eXBlEhAKDkVtcHR5Q2FydEVycm9yGigKEWV4Y2VwdGlvbi5tZXNzYWdlEhMKEXRoZSBjYXJ0IGlzIGVtcHR5GnQKFGV4Y2VwdGlvbi5zdGFja3RyYWNlElwKWkVtcHR5Q2FydEVycm9yOiB0aGUgY2FydCBpcyBlbXB0eQogICAgYXQgY2hlY2tvdXQgKGh0dHBzOi8vc2hvcC5leGFtcGxlL2Fzc2V0cy9hcHAuanM6MToxKXoVEhF0aGUgY2FydCBpcyBlbXB0eRgC'

const signal = z.enum(SIGNALS).meta({ description: 'The OTLP signal of the body.', example: 'traces' })

const contentEncoding = z
  .enum(['gzip', 'deflate', 'zstd'])
  .optional()
  .meta({ description: 'The compression of the body; absent if it is not compressed.' })

/** Codes of problems that a retry may solve. */
const RETRIED: readonly ProblemCode[] = ['INGEST_BACKPRESSURE', 'INGEST_INFRA_UNAVAILABLE']

/** Body of a problem of OTLP exports (docs/api/otlp.md#drain): no service, and a code only where a retry may help. */
const drainProblem = z
  .strictObject({
    code: z.enum(RETRIED).optional(),
    message: z.string(),
  })
  .meta({ id: 'DrainProblem', description: 'A refusal of an OTLP export. It has a code only where a retry may help.' })

/** An OTLP request. OpenTelemetry defines its message. */
const otlpMessage = z
  .looseObject({})
  .meta({ id: 'OtlpMessage', description: 'Export…ServiceRequest of OTLP in its JSON encoding.' })
/** An OTLP response. OpenTelemetry defines its message. */
const otlpSuccess = z.strictObject({}).meta({
  id: 'OtlpSuccess',
  description: 'Export…ServiceResponse of OTLP: empty, because the whole export was accepted.',
})

/** A refusal as clients of OTLP read it: the message `google.rpc.Status` in the JSON encoding of protobuf. */
export interface OtlpStatus {
  /** A code of gRPC (`google.rpc.Code`). */
  readonly code: number
  readonly message: string
  readonly details?: readonly [{ readonly '@type': typeof RETRY_INFO; readonly retryDelay: `${number}s` }]
}

/** Type of the detail with the time after which a client may send again. */
export const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** Codes of gRPC. Clients of OTLP send again after UNAVAILABLE and DEADLINE_EXCEEDED. */
const GRPC = {
  OK: 0,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const

/** RESOURCE_EXHAUSTED is for no refusal that ends: without a detail that they read, clients drop what they sent. */
const CODES: Partial<Record<ProblemCode, number>> = {
  AUTH_MISSING: GRPC.UNAUTHENTICATED,
  AUTH_PK_INVALID: GRPC.UNAUTHENTICATED,
  PERMISSION_DENIED: GRPC.PERMISSION_DENIED,
  NOT_FOUND: GRPC.NOT_FOUND,
  METHOD_NOT_ALLOWED: GRPC.UNIMPLEMENTED,
  INGEST_BACKPRESSURE: GRPC.UNAVAILABLE,
  INGEST_INFRA_UNAVAILABLE: GRPC.UNAVAILABLE,
  INTERNAL: GRPC.INTERNAL,
}

/** Codes of invalid requests by their HTTP status. */
const CODES_OF_STATUS: Readonly<Record<number, number>> = {
  408: GRPC.DEADLINE_EXCEEDED,
  413: GRPC.RESOURCE_EXHAUSTED,
  415: GRPC.UNIMPLEMENTED,
  501: GRPC.UNIMPLEMENTED,
}

/** Returns the status of a problem. A client that may send again is always told when. */
export function statusOf(problem: Pick<Problem, 'code' | 'message' | 'status' | 'retryAfterSeconds'>): OtlpStatus {
  const { code: problemCode, status, message, retryAfterSeconds = 1 } = problem
  const code = CODES[problemCode] ?? CODES_OF_STATUS[status ?? 0] ?? GRPC.INVALID_ARGUMENT
  const details = [{ '@type': RETRY_INFO, retryDelay: `${retryAfterSeconds}s` }] as const
  return { code, message, ...(code === GRPC.UNAVAILABLE && { details }) }
}

/** Body of a problem of exports at the address of OTLP: `google.rpc.Status`, in the encoding of the request. */
const otlpStatus = z
  .strictObject({
    code: z.int().meta({ description: 'A code of gRPC.' }),
    message: z.string(),
    details: z
      .array(z.looseObject({ '@type': z.string() }))
      .optional()
      .meta({ description: 'A `google.rpc.RetryInfo` if the same request may be sent again.' }),
  })
  .meta({ id: 'OtlpStatus', description: 'A refusal of an OTLP export, as OTLP states it.' })

/** The common part of both addresses of OTLP exports. */
const otlpExport = {
  method: 'POST',
  service: 'frontier-runtime',
  tag: 'telemetry',
  description: `Acknowledged once it is on disk. At most ${formatBytes(EXPORT_BYTES)} as sent and ${formatBytes(EXPORT_DECOMPRESSED_BYTES)} decompressed.`,
  credentials: PUBLIC_KEY,
  cors: true,
  parameters: {
    path: z.object({ signal }),
    query: pageRequestQuery,
    header: z.object({ 'content-encoding': contentEncoding }),
  },
  body: {
    limitBytes: EXPORT_BYTES,
    overLimitAdvice: 'export smaller batches',
    contents: {
      // First, because generated clients send the first of several media types.
      'application/json': { schema: otlpMessage, example: EXAMPLE_EXPORT },
      'application/x-protobuf': { example: EXAMPLE_EXPORT_BASE64 },
    },
  },
  receiptStatuses: [200],
  success: {
    status: 200,
    description: 'The whole export was accepted.',
    contents: { 'application/json': { schema: otlpSuccess, example: {} }, 'application/x-protobuf': { example: '' } },
  },
  problems: [...publicKeyProblems, { code: 'NOT_FOUND' }],
} as const satisfies Omit<Operation, 'operationId' | 'path' | 'summary'>

/** Accepts an OTLP export (docs/api/otlp.md#drain). */
export const drain: Operation = {
  ...otlpExport,
  operationId: 'exportTelemetry',
  path: '/drain/v1/:signal',
  summary: 'Accept an OTLP export',
  problemForm: { schema: drainProblem },
}

/** Accepts an OTLP export at the address that clients use by default. */
export const exportOtlp: Operation = {
  ...otlpExport,
  operationId: 'exportOtlp',
  path: '/v1/:signal',
  summary: 'Accept an OTLP export at the default address of its clients',
  problemForm: { schema: otlpStatus, otherType: 'application/x-protobuf' },
}
