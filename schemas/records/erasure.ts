import { z } from 'zod'
import { actorSchema } from './change.ts'

const instant = z.iso.datetime()

/** Subject of an erasure: a user identifier, of one source of identities or of all, or a single session. */
const erasureSubjectSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('identifier'), identifier: z.string(), sourceType: z.string().optional() }),
  z.object({ kind: z.literal('session'), sessionId: z.string() }),
])
/** Subject of an erasure. */
export type ErasureSubject = z.infer<typeof erasureSubjectSchema>

/** Record of an erasure, and of what it has removed (docs/api/retention.md#erasures). */
export const erasureSchema = z.object({
  version: z.literal(1),
  id: z.string().regex(/^ers_[0-9a-f]{20}$/),
  workspaceId: z.string(),
  kind: z.enum(['identifier', 'session']),
  /** Absent once everything is deleted: only the hash is kept. */
  subject: erasureSubjectSchema.optional(),
  /** HMAC-SHA-256 of the subject in hex, with a key of the installation. */
  subjectHash: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: instant,
  createdBy: actorSchema,
  /**
   * `deleting`: what is stored is deleted. `settling`: waits until everything that was accepted before is settled.
   * `deleting_again`: what was queued is deleted. `waiting_for_rewrite`: no read finds anything any more, and the bytes leave the
   * disk when the days with deleted rows are written again. `failed`: nothing more is done.
   */
  state: z.enum(['deleting', 'settling', 'deleting_again', 'waiting_for_rewrite', 'done', 'failed']),
  /** Time of Redis, in Unix ms, before which everything must be settled. Null before the first pass. */
  settledAfterMs: z.number().nullable(),
  /** Sessions of the current pass that are done, in the order of their ids. Null before they are known. */
  position: z.number().int().min(0).nullable(),
  sessions: z.number().int().min(0),
  /** Deleted rows by table. */
  rows: z.record(z.string(), z.number()),
  /** The last step that has counted rows, which may not be deleted yet. Null before the first one. */
  counted: z.object({ step: z.string(), rows: z.number() }).nullable(),
  /** Removed comments on findings. */
  comments: z.number().int().min(0),
  objects: z.number().int().min(0),
  objectBytes: z.number().int().min(0),
  completedAt: instant.nullable(),
  failure: z.enum(['too_many_sessions']).nullable(),
})
/** Record of an erasure. */
export type Erasure = z.infer<typeof erasureSchema>
