import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { findingId } from '../findings/operations.ts'
import type { PermittedOperation } from '../operation.ts'
import { findingsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { readTraceQuerySchema, traceIdSchema, traceSchema } from './schemas.ts'

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
