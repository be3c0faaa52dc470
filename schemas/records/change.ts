import { z } from 'zod'
import { userIdSchema } from './directory.ts'

/** Who changes something: a user, through an API key or not. Null for an operator at the command line. */
export const actorSchema = z.object({ userId: userIdSchema, apiKeyId: z.string().nullable() }).nullable()
/** Who changes something. */
export type Actor = z.infer<typeof actorSchema>

/** Actions of members on findings. */
export const FINDING_ACTIONS = [
  ...['acknowledged', 'resolved', 'ignored', 'reopened', 'assigned', 'unassigned', 'commented'],
  ...['merged', 'split', 'split_off'],
] as const

/** The most characters of a comment. */
export const COMMENT_MAX_CHARACTERS = 2_000

/** Record of something that was done with a finding. */
export const findingEntrySchema = z.object({
  id: z.string().regex(/^act_[0-9a-f]{20}$/),
  createdAt: z.iso.datetime(),
  by: actorSchema,
  /** Present if the link of a message did it: the name of the receiver of the message. `by` is null then. */
  via: z.object({ receiver: z.string() }).optional(),
  action: z.enum(FINDING_ACTIONS),
  /** The user to whom the finding was assigned. */
  assignee: userIdSchema.optional(),
  /** Until when the finding is ignored. */
  until: z.iso.datetime().optional(),
  /** After how many occurrences the finding is open again. */
  occurrences: z.int().min(1).optional(),
  /** The comment. */
  text: z.string().optional(),
  /** The finding that was merged into this one, that was split off it, or that this one was split from. */
  findingId: z
    .string()
    .regex(/^fnd_[a-z2-7]{26}$/)
    .optional(),
})
/** Record of something that was done with a finding. */
export type FindingEntry = z.infer<typeof findingEntrySchema>

/** Changes of a workspace that its log has. */
export const CHANGE_ACTIONS = [
  'surface.created',
  'surface.deleted',
  'surface-key.created',
  'surface-key.changed',
  'surface-key.revoked',
  'surface-key.passed',
  'api-key.created',
  'api-key.revoked',
  'api-key.passed',
  'member.added',
  'member.changed',
  'member.removed',
  'release.deleted',
  'retention.changed',
  'finding-rules.changed',
  'scrubbing.changed',
  'dropping.changed',
  'alerts.changed',
  'dead-letters.purged',
  'erasure.created',
] as const

/** Record of a change of a workspace. */
export const changeSchema = z.object({
  id: z.string().regex(/^chg_[0-9a-f]{20}$/),
  createdAt: z.iso.datetime(),
  by: actorSchema,
  action: z.enum(CHANGE_ACTIONS),
  /** Id of the surface, key, user, release or erasure; empty if the change is of the workspace. */
  subject: z.string().max(256),
  /** Name of what was created, or the permissions that a member has afterwards. */
  name: z.string().optional(),
  permissions: z.array(z.string()).optional(),
})
/** Record of a change of a workspace. */
export type Change = z.infer<typeof changeSchema>
