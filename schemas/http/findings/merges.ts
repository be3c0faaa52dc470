import { z } from 'zod'
import { MANAGER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf } from '../fields.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { findingsProblems } from '../problem-sets.ts'
import { findingId } from './operations.ts'
import { findingChangedSchema, findingIdSchema } from './schemas.ts'

/** The most findings that one request merges into another one. */
const MERGED_AT_ONCE = 100

/** Body of POST /v3/findings/{findingId}/merge. */
export const mergeFindingsSchema = exactObject({
  findingIds: listOf(findingIdSchema, MERGED_AT_ONCE, 'must be an array of ids of findings').pipe(
    z.array(findingIdSchema).min(1, 'must have an id'),
  ),
}).meta({ id: 'MergeFindingsRequest' })

/** Body of POST /v3/findings/{findingId}/split. */
export const splitFindingSchema = exactObject({
  findingId: findingIdSchema.meta({ description: 'A finding that is merged into it.' }),
}).meta({ id: 'SplitFindingRequest' })

const finding = {
  surfaceId: EXAMPLE.surfaceId,
  serviceName: EXAMPLE.serviceName,
  type: EXAMPLE_EXCEPTION.type,
  message: EXAMPLE_EXCEPTION.message,
  firstSeenAt: EXAMPLE_TIMES.thrownAt,
  lastSeenAt: EXAMPLE_TIMES.thrownAt,
  status: 'open',
}

/** Merges findings (docs/api/findings.md#merges). */
export const mergeFindings: PermittedOperation = {
  operationId: 'mergeFindings',
  method: 'POST',
  path: '/v3/findings/:findingId/merge',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Merge findings into one',
  description: 'The one that was seen first stays. Merging what is merged already changes nothing.',
  credentials: MANAGER,
  permission: 'org:findings:write',
  parameters: { path: z.object({ findingId }) },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: mergeFindingsSchema, example: { findingIds: [EXAMPLE.mergedFindingId] } },
    },
  },
  success: {
    status: 200,
    description: 'The finding that stays.',
    contents: {
      'application/json': {
        schema: findingChangedSchema,
        example: { finding: { id: EXAMPLE.findingId, ...finding, occurrenceCount: 2 } },
      },
    },
  },
  problems: findingsProblems,
}

/** Splits a finding from the one that it is merged into (docs/api/findings.md#merges). */
export const splitFinding: PermittedOperation = {
  operationId: 'splitFinding',
  method: 'POST',
  path: '/v3/findings/:findingId/split',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Make a merged finding one of its own again',
  description: 'It is open, and has its occurrences. Comments stay. Splitting it again changes nothing.',
  credentials: MANAGER,
  permission: 'org:findings:write',
  parameters: { path: z.object({ findingId }) },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: splitFindingSchema, example: { findingId: EXAMPLE.mergedFindingId } },
    },
  },
  success: {
    status: 200,
    description: 'The finding that was split off.',
    contents: {
      'application/json': {
        schema: findingChangedSchema,
        example: {
          finding: {
            ...{ id: EXAMPLE.mergedFindingId, ...finding, occurrenceCount: 1 },
            ...{ statusChangedAt: EXAMPLE_TIMES.createdAt, splitFrom: EXAMPLE.findingId },
          },
        },
      },
    },
  },
  problems: findingsProblems,
}
