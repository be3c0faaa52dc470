import { z } from 'zod'
import { nextCursorSchema, pageQuerySchema } from '../page.ts'

/** RFC 3339, with any offset; what is below a millisecond is left out. */
export const instantQuerySchema = z.iso.datetime({ offset: true, error: 'must be a time as RFC 3339 has it' })

const BEFORE = 'must be before "to"'

/** From before to, where both are given. */
export function isOrdered({ from, to }: { from?: string | undefined; to?: string | undefined }): boolean {
  return from === undefined || to === undefined || Date.parse(from) < Date.parse(to)
}

export const orderedRange = { path: ['from'], error: BEFORE }

/** The query of GET /v3/findings. */
export const listFindingsQuerySchema = pageQuerySchema
  .extend({
    surface: z
      .string()
      .min(1, 'must not be empty')
      .max(200, 'must have at most 200 characters')
      .optional()
      .meta({ description: 'Only those of the surface with this id.' }),
    service: z.string().max(1024, 'must have at most 1024 characters').optional().meta({
      description: 'Only those of this `service.name`, as it was sent; empty: of those that sent none.',
    }),
    from: instantQuerySchema.optional().meta({
      description: 'Only those with occurrences received from here on, by the clock of the service.',
    }),
    to: instantQuerySchema.optional().meta({ description: 'Only those with occurrences received before.' }),
    q: z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters').optional().meta({
      description:
        'In the first 1,000 characters of type and message of the occurrence that arrived last, whatever the case.',
    }),
  })
  .refine(isOrdered, orderedRange)
export type ListFindingsQuery = z.infer<typeof listFindingsQuerySchema>

/** The query of GET /v3/findings/{findingId}: the time that `occurrences` covers. */
export const findingActivityQuerySchema = z
  .object({
    from: instantQuerySchema.optional().meta({ description: 'Where `occurrences` begins.' }),
    to: instantQuerySchema.optional().meta({ description: 'Where it ends.' }),
  })
  .refine(isOrdered, orderedRange)
export type FindingActivityQuery = z.infer<typeof findingActivityQuerySchema>

export const OCCURRENCE_BUCKETS_MAX = 400
export const LAST_OCCURRENCES = 10
/** Characters of a message that are shown of an occurrence. */
export const OCCURRENCE_MESSAGE_MAX = 500

/**
 * How often a finding occurred, by when its occurrences were received: `counts[i]` in the bucket that begins
 * `i * bucketSeconds` after `from`. `from` and `to` are those asked for, widened to whole buckets.
 */
export const occurrenceCountsSchema = z
  .strictObject({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    bucketSeconds: z.number().int().min(300),
    counts: z.array(z.number().int().min(0)).max(OCCURRENCE_BUCKETS_MAX),
  })
  .meta({
    id: 'OccurrenceCounts',
    description:
      'How often the finding occurred, by when its occurrences were received: `counts[i]` in the bucket that begins `i * bucketSeconds` after `from`. `from` and `to` are those asked for, widened to whole buckets.',
  })
export type OccurrenceCounts = z.infer<typeof occurrenceCountsSchema>

/** What is optional is left out when absent. */
export const occurrenceSchema = z
  .strictObject({
    occurredAt: z.iso.datetime({ precision: 9 }).meta({ description: 'By the clock of whoever sent it.' }),
    receivedAt: z.iso.datetime(),
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
    spanId: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
    sessionId: z.string().optional(),
    serviceVersion: z.string().optional(),
    message: z.string().meta({ description: `Its first ${OCCURRENCE_MESSAGE_MAX} characters.` }),
  })
  .meta({ id: 'Occurrence', description: 'What is absent is left out.' })
export type Occurrence = z.infer<typeof occurrenceSchema>

/** What GET /v3/findings/{findingId} tells of a finding beside the finding itself. */
export const findingActivitySchema = z.strictObject({
  occurrences: occurrenceCountsSchema,
  lastOccurrences: z
    .array(occurrenceSchema)
    .max(LAST_OCCURRENCES)
    .meta({ description: 'Those received last, the latest first.' }),
  seenIn: z
    .strictObject({
      surfaceIds: z.array(z.string()),
      serviceNames: z.array(z.string()),
      serviceVersions: z.array(z.string()).meta({ description: 'Up to 20.' }),
      approximateTraceCount: z
        .number()
        .int()
        .min(0)
        .meta({ description: 'Within about 1 %; exact where there are few.' }),
      approximateSessionCount: z.number().int().min(0),
    })
    .meta({ id: 'FindingPlaces', description: 'Where the finding has been seen.' }),
})
export type FindingActivity = z.infer<typeof findingActivitySchema>

/** `fnd_` and 26 base32 characters: a hash of workspace and fingerprint. */
export const findingIdSchema = z.string().regex(/^fnd_[a-z2-7]{26}$/)

const instant = z.iso.datetime({ precision: 9 })

export const findingSchema = z
  .strictObject({
    id: findingIdSchema,
    surfaceId: z.string(),
    serviceName: z.string(),
    type: z.string().meta({ description: 'Of the latest occurrence.' }),
    message: z.string().meta({ description: 'Of the latest occurrence.' }),
    firstSeenAt: instant,
    lastSeenAt: instant,
    occurrenceCount: z.number().int().min(1),
  })
  .meta({ id: 'Finding', description: 'Exceptions with one fingerprint.' })
export type Finding = z.infer<typeof findingSchema>

/** GET /v3/findings: the one that arrived last first. */
export const findingsPageSchema = z
  .strictObject({ findings: z.array(findingSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'FindingsPage' })
export type FindingsPage = z.infer<typeof findingsPageSchema>

/** Where a frame stands. Line and column count from 1, and are 0 where the stack names none (native code). */
const placeSchema = {
  function: z.string().meta({ description: 'Empty outside of any function.' }),
  file: z.string(),
  line: z.number().int().min(0),
  column: z.number().int().min(0),
}

/** A frame of a finding: its original place when a source map has it (`resolved`), else the place that was sent. */
export const findingFrameSchema = z
  .strictObject({
    ...placeSchema,
    sourceLine: z.string().optional().meta({
      description: 'The line of the original source, at most 200 characters of it, where the map has the source.',
    }),
    resolved: z.boolean().meta({ description: 'The place is the original one; else it is as it was sent.' }),
    generated: z.strictObject(placeSchema).meta({ description: 'As it was sent.' }),
  })
  .meta({
    id: 'FindingFrame',
    description: 'A frame of a stack. Line and column count from 1, and are 0 where the stack names none.',
  })
export type FindingFrame = z.infer<typeof findingFrameSchema>

/** GET /v3/findings/{findingId}. `frames`: innermost first; empty when no stack was sent, or none that is known. */
export const findingAnswerSchema = z.strictObject({
  finding: z
    .strictObject({
      ...findingSchema.shape,
      frames: z
        .array(findingFrameSchema)
        .meta({ description: 'Innermost first; empty when no stack was sent, or none that is known.' }),
      ...findingActivitySchema.shape,
    })
    .meta({ id: 'FindingDetails' }),
})

/** A trace in which a finding occurred; `id` and `traceId` are the same. */
export const findingTraceSchema = z
  .strictObject({
    id: z.string().regex(/^[0-9a-f]{32}$/),
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({ description: 'The same as `id`.' }),
    occurrenceCount: z.number().int().min(1).meta({ description: 'How often the finding occurred in this trace.' }),
    lastSeenAt: instant,
  })
  .meta({ id: 'FindingTrace' })
export type FindingTrace = z.infer<typeof findingTraceSchema>

/** GET /v3/findings/{findingId}/traces: the newest first, by when the finding first arrived in them. */
export const findingTracesPageSchema = z
  .strictObject({ traces: z.array(findingTraceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'FindingTracesPage' })
export type FindingTracesPage = z.infer<typeof findingTracesPageSchema>
