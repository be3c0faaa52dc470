import { z } from 'zod'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import { idempotencyHeader } from '../fields.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { findingsProblems, IDEMPOTENCY_CONFLICT } from '../problem-sets.ts'
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

const { surfaceId, traceId, sessionId, serviceName, version } = EXAMPLE

const finding = {
  id: EXAMPLE.findingId,
  surfaceId,
  serviceName,
  type: EXAMPLE_EXCEPTION.type,
  message: EXAMPLE_EXCEPTION.message,
  firstSeenAt: EXAMPLE_TIMES.thrownAt,
  lastSeenAt: EXAMPLE_TIMES.thrownAt,
  occurrenceCount: 1,
  status: 'open',
}

const by = { userId: EXAMPLE.userId, apiKeyId: null }

const comment = {
  id: 'act_2d7c90b1e6f34a58c013',
  createdAt: EXAMPLE_TIMES.completedAt,
  by,
  action: 'commented',
  text: 'The cart is emptied twice.',
}

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  listFindings: {
    findings: [finding],
    nextCursor: null,
    occurrences: {
      from: '2026-09-21T12:00:00.000Z',
      to: '2026-09-21T15:00:00.000Z',
      bucketSeconds: 3_600,
      counts: [[0, 0, 1]],
      times: 'occurred',
    },
  },
  readFinding: {
    finding: {
      ...finding,
      frames: [
        {
          function: 'checkout',
          file: 'cart.ts',
          line: 1,
          column: 1,
          resolved: true,
          inApp: true,
          generated: { function: 'checkout', file: 'https://shop.example/assets/app.js', line: 1, column: 1 },
        },
      ],
      grouping: { by: 'frames', exceptions: [{ type: EXAMPLE_EXCEPTION.type, frames: ['checkout cart.ts'] }] },
      firstReceivedAt: EXAMPLE_TIMES.receivedAt,
      lastReceivedAt: EXAMPLE_TIMES.receivedAt,
      occurrences: {
        from: '2026-09-21T12:00:00.000Z',
        to: '2026-09-21T15:00:00.000Z',
        bucketSeconds: 3_600,
        counts: [0, 0, 1],
        times: 'occurred',
      },
      lastOccurrences: [
        {
          occurredAt: EXAMPLE_TIMES.thrownAt,
          receivedAt: EXAMPLE_TIMES.receivedAt,
          traceId,
          spanId: EXAMPLE.spanId,
          sessionId,
          serviceVersion: version,
          message: EXAMPLE_EXCEPTION.message,
        },
      ],
      seenIn: {
        surfaceIds: [surfaceId],
        serviceNames: [serviceName],
        serviceVersions: [version],
        approximateTraceCount: 1,
        approximateSessionCount: 1,
      },
    },
  },
  changeFinding: {
    finding: { ...finding, status: 'resolved', statusChangedAt: EXAMPLE_TIMES.createdAt, assignee: EXAMPLE.userId },
  },
  commentFinding: { entry: comment },
  listFindingActivity: {
    activity: [comment, { id: 'act_9a3b5c7d0e1f21324354', createdAt: EXAMPLE_TIMES.createdAt, by, action: 'resolved' }],
    nextCursor: null,
  },
  listFindingTraces: {
    traces: [{ id: traceId, traceId, occurrenceCount: 1, lastSeenAt: EXAMPLE_TIMES.thrownAt }],
    nextCursor: null,
  },
} as const

/** Path parameter of operations on one finding. */
export const findingId = findingIdSchema.meta({ description: 'The finding.', example: EXAMPLE.findingId })

const { surface, service, from, to, q, status, occurrences, times, ...page } = listFindingsQuerySchema.shape

const listQuery = z.object({
  ...page,
  surface: surface.meta({ example: EXAMPLE.surfaceId }),
  service: service.meta({ example: EXAMPLE.serviceName }),
  from: from.meta({ example: EXAMPLE.from }),
  to: to.meta({ example: EXAMPLE.to }),
  q: q.meta({ example: 'cart' }),
  status: status.meta({ example: 'open' }),
  occurrences: occurrences.meta({ example: 'true' }),
  times: times.meta({ example: 'occurred' }),
})

const activityQuery = z.object({
  from: findingActivityQuerySchema.shape.from.meta({ example: EXAMPLE.from }),
  to: findingActivityQuerySchema.shape.to.meta({ example: EXAMPLE.to }),
  times: findingActivityQuerySchema.shape.times.meta({ example: 'occurred' }),
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
  problems: findingsProblems,
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
  parameters: { path: z.object({ findingId }), header: idempotencyHeader },
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
  problems: [...findingsProblems, IDEMPOTENCY_CONFLICT],
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
