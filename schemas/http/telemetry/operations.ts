import { z } from 'zod'
import { SIGNAL_QUEUES, type Signal } from '../../queues/names.ts'
import { PUBLIC_KEY } from '../credentials.ts'
import { EXPORT_BYTES, EXPORT_DECOMPRESSED_BYTES, formatBytes } from '../limits.ts'
import type { Operation } from '../operation.ts'
import { publicKeyProblems } from '../problem-sets.ts'
import type { ProblemCode } from '../problems.ts'
import { EXAMPLE_EXPORT, EXAMPLE_EXPORT_BASE64 } from './examples.ts'

const signal = z
  .enum(Object.keys(SIGNAL_QUEUES) as [Signal, ...Signal[]])
  .meta({ description: 'The OTLP signal of the body.', example: 'traces' })

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

/** Accepts an OTLP export (docs/api/otlp.md#drain). */
export const drain: Operation = {
  operationId: 'exportTelemetry',
  method: 'POST',
  path: '/drain/v1/:signal',
  service: 'frontier-runtime',
  tag: 'telemetry',
  summary: 'Accept an OTLP export',
  description: `Acknowledged once it is on disk. At most ${formatBytes(EXPORT_BYTES)} as sent and ${formatBytes(EXPORT_DECOMPRESSED_BYTES)} decompressed.`,
  credentials: PUBLIC_KEY,
  cors: true,
  parameters: { path: z.object({ signal }), header: z.object({ 'content-encoding': contentEncoding }) },
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
  problemForm: {
    schema: drainProblem,
    of: ({ code, message }) => (RETRIED.includes(code) ? { code, message } : { message }),
  },
  problems: [...publicKeyProblems, { code: 'NOT_FOUND', when: 'signal must be traces, logs or metrics' }],
}
