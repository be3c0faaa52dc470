import { z } from 'zod'
import { exactObject, textOf } from '../fields.ts'
import { nextCursorSchema } from '../page.ts'
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
export const shownErasureSchema = z
  .strictObject({
    id: erasureIdSchema,
    kind: z.enum(['identifier', 'session']),
    subjectHash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .meta({ description: 'Keyed hash of what was erased. The same subject has the same hash.' }),
    state: z.enum(['deleting', 'settling', 'deleting_again', 'done', 'failed']).meta({
      description:
        'deleting: stored data is deleted. settling: waits until what was accepted before is stored. deleting_again: that is deleted too.',
    }),
    failure: z.enum(['too_many_sessions']).nullable().meta({ description: 'Why the erasure has failed; else null.' }),
    createdAt: z.iso.datetime(),
    createdBy: z.string(),
    completedAt: z.iso.datetime().nullable(),
    sessions: z.int().meta({ description: 'Number of sessions.' }),
    rows: z.record(z.string(), z.int()).meta({ description: 'Deleted rows by table.' }),
    objects: z.int().meta({ description: 'Deleted objects, at least.' }),
    objectBytes: z.int().meta({ description: 'Bytes of the deleted replay chunks, at least.' }),
  })
  .meta({ id: 'Erasure', description: 'The erasure of a person or a session, and its receipt.' })
/** An erasure, and what it has removed. */
export type ShownErasure = z.infer<typeof shownErasureSchema>

/** Response of POST /v3/erasures and of GET /v3/erasures/{id}. */
export const erasureAnswerSchema = z.strictObject({ erasure: shownErasureSchema })
/** Response of POST /v3/erasures and of GET /v3/erasures/{id}. */
export type ErasureAnswer = z.infer<typeof erasureAnswerSchema>

/** Response of GET /v3/erasures, newest first. */
export const erasuresPageSchema = z
  .strictObject({ erasures: z.array(shownErasureSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ErasuresPage' })
/** Response of GET /v3/erasures. */
export type ErasuresPage = z.infer<typeof erasuresPageSchema>
