import { READER } from '../credentials.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { watermarksProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { watermarksPageSchema } from './schemas.ts'

/** Lists the watermarks of the surfaces (docs/api/receipts.md#watermarks). */
export const listWatermarks: PermittedOperation = {
  operationId: 'listWatermarks',
  method: 'GET',
  path: '/v3/watermarks',
  service: 'api-analytics',
  tag: 'telemetry',
  summary: 'List what is settled of the requests of each surface, newest surface first',
  description: 'Everything that a surface had accepted before its watermark is stored, dead-lettered or discarded.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of watermarks.',
    contents: { 'application/json': { schema: watermarksPageSchema, example: ANSWERS.listWatermarks } },
  },
  problems: watermarksProblems,
}
