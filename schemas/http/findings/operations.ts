import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { findingsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import {
  findingActivityQuerySchema,
  findingAnswerSchema,
  findingIdSchema,
  findingsPageSchema,
  findingTracesPageSchema,
  listFindingsQuerySchema,
} from './schemas.ts'

/** Path parameter of operations on one finding. */
export const findingId = findingIdSchema.meta({ description: 'The finding.', example: EXAMPLE.findingId })

const { surface, service, from, to, q, ...page } = listFindingsQuerySchema.shape

const listQuery = z.object({
  ...page,
  surface: surface.meta({ example: EXAMPLE.surfaceId }),
  service: service.meta({ example: EXAMPLE.serviceName }),
  from: from.meta({ example: EXAMPLE.from }),
  to: to.meta({ example: EXAMPLE.to }),
  q: q.meta({ example: 'cart' }),
})

const activityQuery = z.object({
  from: findingActivityQuerySchema.shape.from.meta({ example: EXAMPLE.from }),
  to: findingActivityQuerySchema.shape.to.meta({ example: EXAMPLE.to }),
})

/** Lists findings (docs/contract.md#findings). */
export const listFindings: PermittedOperation = {
  operationId: 'listFindings',
  method: 'GET',
  path: '/v3/findings',
  service: 'api-findings',
  tag: 'findings',
  summary: 'List the findings of the workspace, last received first',
  description: 'All pages show what was stored when the first page was read.',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { query: listQuery },
  success: {
    status: 200,
    description: 'A page of findings.',
    contents: { 'application/json': { schema: findingsPageSchema, example: ANSWERS.listFindings } },
  },
  problems: findingsProblems,
}

/** Reads a finding (docs/contract.md#findings). */
export const readFinding: PermittedOperation = {
  operationId: 'readFinding',
  method: 'GET',
  path: '/v3/findings/:findingId',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Read a finding: its stack, and when and where it occurred',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId }), query: activityQuery },
  success: {
    status: 200,
    description: 'The finding.',
    contents: { 'application/json': { schema: findingAnswerSchema, example: ANSWERS.readFinding } },
  },
  problems: findingsProblems,
}

/** Lists the traces of a finding (docs/contract.md#findings). */
export const listFindingTraces: PermittedOperation = {
  operationId: 'listFindingTraces',
  method: 'GET',
  path: '/v3/findings/:findingId/traces',
  service: 'api-findings',
  tag: 'findings',
  summary: 'List the traces in which a finding occurred, newest first',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId }), query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of traces.',
    contents: { 'application/json': { schema: findingTracesPageSchema, example: ANSWERS.listFindingTraces } },
  },
  problems: findingsProblems,
}
