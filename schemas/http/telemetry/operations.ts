import { z } from 'zod'
import { SIGNAL_QUEUES, type Signal } from '../../queues/names.ts'
import { formatBytes, MIB } from '../byte-size.ts'
import { PUBLIC_KEY } from '../credentials.ts'
import type { Operation } from '../operation.ts'
import { publicKeyProblems } from '../problem-sets.ts'
import type { ProblemCode } from '../problems.ts'
import { EXAMPLE_EXPORT, EXAMPLE_EXPORT_BASE64 } from './examples.ts'

/** Limit of an export as sent. */
const EXPORT_LIMIT_BYTES = 20 * MIB

const signal = z
  .enum(Object.keys(SIGNAL_QUEUES) as [Signal, ...Signal[]])
  .meta({ description: 'Which kind of telemetry the body is.', example: 'traces' })

const contentEncoding = z
  .enum(['gzip', 'deflate', 'zstd'])
  .optional()
  .meta({ description: 'How the body is compressed; absent when it is not.' })

/** The codes that a client may wait out. */
const RETRIED: readonly ProblemCode[] = ['INGEST_BACKPRESSURE', 'INGEST_INFRA_UNAVAILABLE']

/** The body of a problem of 4.4: no service, and a code for what a client retries. */
const drainProblem = z
  .strictObject({
    code: z.enum(RETRIED).optional(),
    message: z.string(),
  })
  .meta({ id: 'DrainProblem', description: 'A refusal of the OTLP endpoint: a code only where a retry helps.' })

/** An OTLP request or response: the messages are OpenTelemetry's own. */
const otlpMessage = z
  .looseObject({})
  .meta({ id: 'OtlpMessage', description: 'Export…ServiceRequest of OTLP in its JSON encoding.' })
const otlpSuccess = z
  .strictObject({})
  .meta({ id: 'OtlpSuccess', description: 'Export…ServiceResponse of OTLP: empty, since all of it was accepted.' })

export const drain: Operation = {
  operationId: 'exportTelemetry',
  method: 'POST',
  path: '/drain/v1/:signal',
  service: 'frontier-runtime',
  tag: 'telemetry',
  summary: 'Take in an OTLP export',
  description: `Acknowledged once it is on disk. At most ${formatBytes(EXPORT_LIMIT_BYTES)} as sent and 64 MiB decompressed.`,
  credentials: PUBLIC_KEY,
  cors: true,
  parameters: { path: z.object({ signal }), header: z.object({ 'content-encoding': contentEncoding }) },
  body: {
    limitBytes: EXPORT_LIMIT_BYTES,
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
    description: 'All of it was accepted.',
    contents: { 'application/json': { schema: otlpSuccess, example: {} }, 'application/x-protobuf': { example: '' } },
  },
  problemForm: {
    schema: drainProblem,
    of: ({ code, message }) => (RETRIED.includes(code) ? { code, message } : { message }),
  },
  problems: [...publicKeyProblems, { code: 'NOT_FOUND', when: 'signal is none of traces, logs and metrics' }],
}
