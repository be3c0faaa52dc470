import { READER } from '../credentials.ts'
import type { PermittedOperation } from '../operation.ts'
import { pipelineProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { pipelineQuerySchema, pipelineSchema } from './schemas.ts'

/** Reads what waits of the requests of a workspace, and what became of the others (docs/api/receipts.md#pipeline). */
export const readPipeline: PermittedOperation = {
  operationId: 'readPipeline',
  method: 'GET',
  path: '/v3/pipeline',
  service: 'api-analytics',
  tag: 'telemetry',
  summary: 'Read what waits in each queue, rates over time, refusals by status and dead letters by reason',
  description: 'Returns the queues also while stored data cannot be read. Then `history` is null.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: pipelineQuerySchema },
  success: {
    status: 200,
    description: 'The pipeline of the workspace.',
    contents: { 'application/json': { schema: pipelineSchema, example: ANSWERS.readPipeline } },
  },
  problems: pipelineProblems,
}
