import { z } from 'zod'
import { COMMENT_MAX_CHARACTERS, FINDING_ACTIONS } from '../../records/change.ts'
import { userIdSchema } from '../../records/directory.ts'
import { IGNORED_OCCURRENCES_MAX } from '../../records/finding-work.ts'
import { exactObject, textOf } from '../fields.ts'
import { nextCursorSchema } from '../page.ts'

/** Statuses of findings. */
const FINDING_STATUSES = ['open', 'resolved', 'ignored', 'regressed'] as const
/** Statuses by which findings are listed. `unresolved` are those that are open or regressed. */
export const LISTED_STATUSES = [...FINDING_STATUSES, 'unresolved'] as const

/** Status of a finding (docs/api/findings.md#finding-work). */
const findingStatusSchema = z.enum(FINDING_STATUSES).meta({
  id: 'FindingStatus',
  description:
    'A resolved finding that occurs again in a later version is `regressed`. One that is ignored for a time, or until it has occurred a number of times, is `open` again afterwards.',
})
/** The most versions that `regressedIn` shows. */
export const REGRESSED_IN_MAX = 10

/** Fields of a finding that show what members have made of it. Absent fields are left out, never null. */
export const findingWorkFields = {
  status: findingStatusSchema,
  statusChangedAt: z.iso.datetime().optional().meta({ description: 'When a member chose a status, if one did.' }),
  assignee: z.string().optional().meta({ description: 'The user who works on it.' }),
  ignoredUntil: z.iso
    .datetime()
    .optional()
    .meta({ description: 'When it is open again, if it is ignored for a time.' }),
  occurrencesUntilOpen: z.int().min(1).optional().meta({
    description: 'After how many further occurrences it is open again, if it is ignored until then.',
  }),
  regressedIn: z.array(z.string()).max(REGRESSED_IN_MAX).optional().meta({
    description:
      'The versions in which it occurred only after it was resolved, if it is regressed. Empty for those without one.',
  }),
  splitFrom: z.string().optional().meta({ description: 'The finding that it was merged into and then split from.' }),
}

const ofIgnored = { error: 'must be left out, unless status is ignored' }

/** Body of PATCH /v3/findings/{findingId}. */
export const changeFindingSchema = exactObject({
  status: z.enum(['open', 'resolved', 'ignored']).optional(),
  ignoreUntil: z.iso
    .datetime({ offset: true })
    .optional()
    .meta({ description: 'With the status `ignored`: when the finding is open again.' }),
  ignoreOccurrences: z
    .int()
    .min(1)
    .max(IGNORED_OCCURRENCES_MAX)
    .optional()
    .meta({ description: 'With the status `ignored`: after how many further occurrences the finding is open again.' }),
  assignee: userIdSchema
    .nullable()
    .optional()
    .meta({ description: 'The member who works on the finding. Null removes it.' }),
})
  .refine(change => change.status !== undefined || change.assignee !== undefined, 'must have status or assignee')
  .refine(({ status, ignoreUntil }) => status === 'ignored' || ignoreUntil === undefined, {
    ...ofIgnored,
    path: ['ignoreUntil'],
  })
  .refine(({ status, ignoreOccurrences }) => status === 'ignored' || ignoreOccurrences === undefined, {
    ...ofIgnored,
    path: ['ignoreOccurrences'],
  })
  .meta({ id: 'ChangeFindingRequest', minProperties: 1 })
/** Body of PATCH /v3/findings/{findingId}. */
export type ChangeFinding = z.infer<typeof changeFindingSchema>

/** Body of POST /v3/findings/{findingId}/comments. */
export const commentFindingSchema = exactObject({ text: textOf(1, COMMENT_MAX_CHARACTERS) }).meta({
  id: 'CommentFindingRequest',
})

/** Who did something. */
export const shownActorSchema = z
  .strictObject({
    userId: z.string(),
    apiKeyId: z.string().nullable().meta({ description: 'Null if the user did not use an API key.' }),
  })
  .nullable()
  .meta({
    id: 'Actor',
    description: 'Who did it. Null for an operator of the installation, and for the link of a message.',
  })

/** Something that was done with a finding. */
const findingActivityEntrySchema = z
  .strictObject({
    id: z.string(),
    createdAt: z.iso.datetime(),
    by: shownActorSchema,
    via: z.strictObject({ receiver: z.string() }).optional().meta({
      description: 'Present if the link of a message did it: the name of the receiver of the message.',
    }),
    action: z.enum(FINDING_ACTIONS),
    assignee: z.string().optional().meta({ description: 'The user to whom it was assigned.' }),
    until: z.iso.datetime().optional().meta({ description: 'Until when it is ignored.' }),
    occurrences: z.int().min(1).optional().meta({ description: 'After how many occurrences it is open again.' }),
    text: z.string().optional().meta({ description: 'The comment.' }),
    findingId: z.string().optional().meta({
      description:
        'The finding that was merged into it (`merged`), split off (`split_off`), or that it was split from (`split`).',
    }),
  })
  .meta({
    id: 'FindingActivityEntry',
    description: 'Something that was done with a finding. Absent fields are left out.',
  })

/** Response of POST /v3/findings/{findingId}/comments. */
export const commentCreatedSchema = z.strictObject({ entry: findingActivityEntrySchema })
/** Response of POST /v3/findings/{findingId}/comments. */
export type CommentCreated = z.infer<typeof commentCreatedSchema>

/** Response of GET /v3/findings/{findingId}/activity, newest first. */
export const findingActivityPageSchema = z
  .strictObject({ activity: z.array(findingActivityEntrySchema), nextCursor: nextCursorSchema })
  .meta({ id: 'FindingActivityPage' })
/** Response of GET /v3/findings/{findingId}/activity. */
export type FindingActivityPage = z.infer<typeof findingActivityPageSchema>
