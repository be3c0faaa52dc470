import { z } from 'zod'
import { MANAGER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { workspaceCreationProblems, workspaceListProblems, workspaceProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { createErasureSchema, erasureAnswerSchema, erasureIdSchema, erasuresPageSchema } from './schemas.ts'

const erasurePath = z.object({
  erasureId: erasureIdSchema.meta({ description: 'The erasure.', example: EXAMPLE.erasureId }),
})

/** Erases a person or a session (docs/api/retention.md#erasures). */
export const createErasure: PermittedOperation = {
  operationId: 'createErasure',
  method: 'POST',
  path: '/v3/erasures',
  service: 'operation',
  tag: 'retention',
  summary: 'Erase everything of a user identifier, or of a session',
  description: 'Returns at once. The erasure in progress for the same subject is returned if there is one.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: createErasureSchema, example: { identifier: 'user-4711' } } },
  },
  success: {
    status: 201,
    description: 'The erasure is recorded, and workers begin within seconds.',
    contents: { 'application/json': { schema: erasureAnswerSchema, example: ANSWERS.createErasure } },
  },
  problems: workspaceCreationProblems,
}

/** Lists erasures (docs/api/retention.md#erasures). */
export const listErasures: PermittedOperation = {
  operationId: 'listErasures',
  method: 'GET',
  path: '/v3/erasures',
  service: 'operation',
  tag: 'retention',
  summary: 'List the erasures of the workspace with their receipts, newest first',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of erasures.',
    contents: { 'application/json': { schema: erasuresPageSchema, example: ANSWERS.listErasures } },
  },
  problems: workspaceListProblems,
}

/** Reads an erasure (docs/api/retention.md#erasures). */
export const readErasure: PermittedOperation = {
  operationId: 'readErasure',
  method: 'GET',
  path: '/v3/erasures/:erasureId',
  service: 'operation',
  tag: 'retention',
  summary: 'Read how far an erasure is, and what it has removed',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  parameters: { path: erasurePath },
  success: {
    status: 200,
    description: 'The erasure.',
    contents: { 'application/json': { schema: erasureAnswerSchema, example: ANSWERS.readErasure } },
  },
  problems: workspaceProblems,
}
