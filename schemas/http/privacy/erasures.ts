import { z } from 'zod'
import { STAYING_KINDS } from '../../records/erased-places.ts'
import { MANAGER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, idempotencyHeader, textOf } from '../fields.ts'
import { shownActorSchema } from '../findings/work.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { nextCursorSchema, pageQuerySchema } from '../page.ts'
import { callerProblems, IDEMPOTENCY_CONFLICT } from '../problem-sets.ts'
import { sessionIdSchema } from '../sessions/schemas.ts'

/** Id of an erasure. */
export const erasureIdSchema = z.string().regex(/^ers_[0-9a-f]{20}$/)

const SUBJECT_RULE = 'must have either identifier, with or without sourceType, or sessionId'

/** Body of POST /v3/erasures. */
export const createErasureSchema = exactObject({
  identifier: textOf(1, 1_024)
    .optional()
    .meta({ description: 'The identifier of a user, as identify requests have sent it: all its sessions are erased.' }),
  sourceType: textOf(1, 64)
    .optional()
    .meta({ description: 'The `source.type` of the identifier; absent for every source.' }),
  sessionId: sessionIdSchema.optional().meta({ description: 'A single session.' }),
})
  .refine(({ identifier, sourceType, sessionId }) => {
    return (identifier === undefined) !== (sessionId === undefined) && (!sourceType || identifier !== undefined)
  }, SUBJECT_RULE)
  .meta({ id: 'CreateErasureRequest' })
/** Body of POST /v3/erasures. */
export type CreateErasure = z.infer<typeof createErasureSchema>

/** An erasure, and what it has removed. */
const shownErasureSchema = z
  .strictObject({
    id: erasureIdSchema,
    kind: z.enum(['identifier', 'session']),
    subjectHash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .meta({ description: 'Keyed hash of what was erased. The same subject has the same hash.' }),
    state: z.enum(['deleting', 'settling', 'deleting_again', 'waiting_for_rewrite', 'done', 'failed']).meta({
      description:
        'deleting: stored data is deleted. settling: waits until what was accepted before is stored. deleting_again: that is deleted too. waiting_for_rewrite: no read finds anything; the bytes leave the disk from 02:00 UTC on.',
    }),
    failure: z.enum(['too_many_sessions']).nullable().meta({ description: 'Why the erasure has failed; else null.' }),
    createdAt: z.iso.datetime(),
    createdBy: shownActorSchema,
    completedAt: z.iso.datetime().nullable(),
    sessions: z.int().meta({ description: 'Number of sessions.' }),
    rows: z.record(z.string(), z.int()).meta({ description: 'Deleted rows by table.' }),
    comments: z.int().meta({ description: 'Removed comments on findings, at least.' }),
    objects: z.int().meta({ description: 'Deleted objects, at least.' }),
    objectBytes: z.int().meta({ description: 'Bytes of the deleted replay chunks, at least.' }),
  })
  .meta({ id: 'Erasure', description: 'The erasure of a person or a session, and its receipt.' })

/** Data that an erasure leaves, and until when. */
const shownRemainsSchema = z
  .strictObject({
    what: z.enum(STAYING_KINDS),
    until: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'When the last of it expires; null if that is up to the operator.' }),
    description: z.string(),
  })
  .meta({ id: 'ErasureRemains' })
/** An erasure, and what it has removed. */
export type ShownErasure = z.infer<typeof shownErasureSchema>

/** Response of POST /v3/erasures and of GET /v3/erasures/{id}. */
export const erasureAnswerSchema = z.strictObject({
  erasure: shownErasureSchema,
  remains: z.array(shownRemainsSchema).meta({ description: 'Data that the erasure leaves, and until when.' }),
})
/** Response of POST /v3/erasures and of GET /v3/erasures/{id}. */
export type ErasureAnswer = z.infer<typeof erasureAnswerSchema>

/** Response of GET /v3/erasures, newest first. */
const erasuresPageSchema = z
  .strictObject({ erasures: z.array(shownErasureSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ErasuresPage' })
/** Response of GET /v3/erasures. */
export type ErasuresPage = z.infer<typeof erasuresPageSchema>

const begun = {
  id: EXAMPLE.erasureId,
  kind: 'identifier',
  subjectHash: 'b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2',
  state: 'deleting',
  failure: null,
  createdAt: EXAMPLE_TIMES.createdAt,
  createdBy: { userId: EXAMPLE.userId, apiKeyId: null },
  completedAt: null,
  sessions: 0,
  rows: {},
  comments: 0,
  objects: 0,
  objectBytes: 0,
} as const

const done = {
  ...begun,
  state: 'done',
  completedAt: EXAMPLE_TIMES.completedAt,
  sessions: 2,
  rows: { spans: 41, session_identities: 2, replay_chunks: 3 },
  comments: 1,
  objects: 3,
  objectBytes: 48_211,
} as const

const remains = [
  {
    what: 'metrics',
    until: EXAMPLE_TIMES.expiresAt,
    description: 'Attributes of metrics. They expire with their day.',
  },
] as const

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  createErasure: { erasure: begun, remains },
  listErasures: { erasures: [begun], nextCursor: null },
  readErasure: { erasure: done, remains },
} as const

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
  parameters: { header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: createErasureSchema, example: { identifier: 'user-4711' } } },
  },
  success: {
    status: 201,
    description: 'The erasure is recorded, and workers begin within seconds.',
    contents: { 'application/json': { schema: erasureAnswerSchema, example: ANSWERS.createErasure } },
  },
  problems: [...callerProblems, IDEMPOTENCY_CONFLICT],
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
  problems: callerProblems,
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
  problems: callerProblems,
}
