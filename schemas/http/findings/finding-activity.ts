import { z } from 'zod'
import { instantQuerySchema, isOrdered, orderedRange } from './list-findings.ts'

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
