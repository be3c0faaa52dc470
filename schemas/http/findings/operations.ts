import { z } from 'zod'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { findingChangeProblems, findingsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import {
  findingActivityQuerySchema,
  findingAnswerSchema,
  findingChangedSchema,
  findingIdSchema,
  findingsPageSchema,
  findingTracesPageSchema,
  listFindingsQuerySchema,
} from './schemas.ts'
import { changeFindingSchema, commentCreatedSchema, commentFindingSchema, findingActivityPageSchema } from './work.ts'

/** Path parameter of operations on one finding. */
export const findingId = findingIdSchema.meta({ description: 'The finding.', example: EXAMPLE.findingId })

const { surface, service, from, to, q, status, occurrences, ...page } = listFindingsQuerySchema.shape

const listQuery = z.object({
  ...page,
  surface: surface.meta({ example: EXAMPLE.surfaceId }),
  service: service.meta({ example: EXAMPLE.serviceName }),
  from: from.meta({ example: EXAMPLE.from }),
  to: to.meta({ example: EXAMPLE.to }),
  q: q.meta({ example: 'cart' }),
  status: status.meta({ example: 'open' }),
  occurrences: occurrences.meta({ example: 'true' }),
})

const activityQuery = z.object({
  from: findingActivityQuerySchema.shape.from.meta({ example: EXAMPLE.from }),
  to: findingActivityQuerySchema.shape.to.meta({ example: EXAMPLE.to }),
})

/** Lists findings (docs/api/findings.md#findings). */
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

/** Reads a finding (docs/api/findings.md#findings). */
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

/** Lists the traces of a finding (docs/api/findings.md#findings). */
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

/** Changes status and assignee of a finding (docs/api/findings.md#finding-work). */
export const changeFinding: PermittedOperation = {
  operationId: 'changeFinding',
  method: 'PATCH',
  path: '/v3/findings/:findingId',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Resolve, ignore, reopen or assign a finding',
  description:
    'Fields that are absent stay as they are. Changes at the same time are made one after the other, and all of them are in the activity.',
  credentials: MANAGER,
  permission: 'org:findings:write',
  parameters: { path: z.object({ findingId }) },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': {
        schema: changeFindingSchema,
        example: { status: 'resolved', assignee: EXAMPLE.userId },
      },
    },
  },
  success: {
    status: 200,
    description: 'The changed finding.',
    contents: { 'application/json': { schema: findingChangedSchema, example: ANSWERS.changeFinding } },
  },
  problems: findingChangeProblems,
}

/** Comments on a finding (docs/api/findings.md#finding-work). */
export const commentFinding: PermittedOperation = {
  operationId: 'commentFinding',
  method: 'POST',
  path: '/v3/findings/:findingId/comments',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Comment on a finding',
  credentials: MANAGER,
  permission: 'org:findings:write',
  parameters: { path: z.object({ findingId }) },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: commentFindingSchema, example: { text: ANSWERS.commentFinding.entry.text } },
    },
  },
  success: {
    status: 201,
    description: 'The comment.',
    contents: { 'application/json': { schema: commentCreatedSchema, example: ANSWERS.commentFinding } },
  },
  problems: findingChangeProblems,
}

/** Lists what was done with a finding (docs/api/findings.md#finding-work). */
export const listFindingActivity: PermittedOperation = {
  operationId: 'listFindingActivity',
  method: 'GET',
  path: '/v3/findings/:findingId/activity',
  service: 'api-findings',
  tag: 'findings',
  summary: 'List what members have done with a finding, newest first',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId }), query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of the activity.',
    contents: { 'application/json': { schema: findingActivityPageSchema, example: ANSWERS.listFindingActivity } },
  },
  problems: findingsProblems,
}
