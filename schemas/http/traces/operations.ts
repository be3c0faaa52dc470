import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { findingId } from '../findings/operations.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { findingsProblems, traceBodyProblems, tracesProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import {
  readSpansBodySchema,
  readTraceQuerySchema,
  spansSchema,
  traceColumnsSchema,
  traceIdSchema,
  traceSchema,
} from './schemas.ts'

const traceId = traceIdSchema.meta({
  description: 'The W3C trace id.',
  example: EXAMPLE.traceId,
})

/** Reads a trace (docs/contract.md#trace). */
export const readTrace: PermittedOperation = {
  operationId: 'readFindingTrace',
  method: 'GET',
  path: '/v3/findings/:findingId/traces/:traceId',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Read every retained span of a trace of a finding',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId, traceId }), query: readTraceQuerySchema },
  success: {
    status: 200,
    description: 'The trace, with its spans ordered by start.',
    contents: { 'application/json': { schema: traceSchema, example: ANSWERS.readFindingTrace } },
  },
  problems: findingsProblems,
}

const ofTrace = z.object({ traceId })

/** Reads all spans of a trace as columns (docs/contract.md#trace-columns). */
export const readTraceColumns: PermittedOperation = {
  operationId: 'readTrace',
  method: 'GET',
  path: '/v3/traces/:traceId',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read all spans of a trace, without their details',
  description:
    'The response is compressed if `Accept-Encoding` has gzip. A trace whose response has more than 24 MiB is read only so.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: ofTrace },
  success: {
    status: 200,
    description: 'The trace, as columns.',
    contents: { 'application/json': { schema: traceColumnsSchema, example: ANSWERS.readTrace } },
  },
  isCompressible: true,
  problems: tracesProblems,
}

/** Reads the details of some spans of a trace (docs/contract.md#span-details). */
export const readSpans: PermittedOperation = {
  operationId: 'readSpans',
  method: 'POST',
  path: '/v3/traces/:traceId/spans',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read everything that was received of some spans',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: ofTrace },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: readSpansBodySchema, example: { spanIds: [EXAMPLE.spanId] } } },
  },
  success: {
    status: 200,
    description: 'The spans.',
    contents: { 'application/json': { schema: spansSchema, example: ANSWERS.readSpans } },
  },
  problems: traceBodyProblems,
}
