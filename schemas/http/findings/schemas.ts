import { z } from 'zod'
import { MERGED_MAX } from '../../records/finding-work.ts'
import { instantQuerySchema, isOrdered, orderedRange, serviceFilter, surfaceFilter } from '../filters.ts'
import { nextCursorSchema, pageQuerySchema } from '../page.ts'
import { findingWorkFields, LISTED_STATUSES } from './work.ts'

/** Times by which occurrences are counted. */
const countTimesSchema = z.enum(['received', 'occurred'])

const countTimesFilter = countTimesSchema.optional().meta({
  example: 'received',
  description: 'Whether `occurrences` has them by the time they were received (default), or by when they occurred.',
})
const countedTimes = countTimesSchema.optional().meta({
  description: 'With `times`: by which time they are counted. `received` also if there are too many for the other.',
})

/** Query of GET /v3/findings. */
export const listFindingsQuerySchema = pageQuerySchema
  .extend({
    surface: surfaceFilter.meta({ description: 'Only findings of the surface with this id.' }),
    service: serviceFilter.meta({
      description: 'Only findings of this `service.name`, as it was sent. If empty, only those without one.',
    }),
    from: instantQuerySchema.optional().meta({
      description: 'Only findings with occurrences received at or after this time, by the clock of the service.',
    }),
    to: instantQuerySchema
      .optional()
      .meta({ description: 'Only findings with occurrences received before this time.' }),
    q: z.string().min(1).max(200).optional().meta({
      description:
        'A text in the first 1,000 characters of type and message of the occurrence received last. Case is ignored.',
    }),
    status: z.enum(LISTED_STATUSES).optional().meta({
      description: 'Only findings with this status at the time of the page. `unresolved`: open or regressed.',
    }),
    occurrences: z.enum(['true', 'false']).optional().meta({ description: 'Whether the page has `occurrences`.' }),
    times: countTimesFilter,
  })
  .refine(isOrdered, orderedRange)
/** Query of GET /v3/findings. */
export type ListFindingsQuery = z.infer<typeof listFindingsQuerySchema>

/** Query of GET /v3/findings/{findingId}: the time range of `occurrences`. */
export const findingActivityQuerySchema = z
  .object({
    from: instantQuerySchema.optional().meta({ description: 'Start of `occurrences`.' }),
    to: instantQuerySchema.optional().meta({ description: 'End of `occurrences`.' }),
    times: countTimesFilter,
  })
  .refine(isOrdered, orderedRange)
/** Query of GET /v3/findings/{findingId}. */
export type FindingActivityQuery = z.infer<typeof findingActivityQuerySchema>

/** Most buckets of `occurrences`. */
export const OCCURRENCE_BUCKETS_MAX = 400
/** Most entries of `lastOccurrences`. */
export const LAST_OCCURRENCES = 10
/** How many characters of a message an occurrence shows. */
export const OCCURRENCE_MESSAGE_MAX = 500

/**
 * Number of occurrences by time: `counts[i]` is that of the bucket which begins `i * bucketSeconds` after `from`. `from` and `to`
 * are the requested ones, widened to whole buckets.
 */
const occurrenceCountsSchema = z
  .strictObject({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    bucketSeconds: z.number().int().min(300),
    counts: z.array(z.number().int().min(0)).max(OCCURRENCE_BUCKETS_MAX),
    times: countedTimes,
  })
  .meta({
    id: 'OccurrenceCounts',
    description:
      'Number of occurrences by time: `counts[i]` is that of the bucket which begins `i * bucketSeconds` after `from`. `from` and `to` are the requested ones, widened to whole buckets.',
  })

/** Fields of an occurrence. */
export const occurrenceFields = {
  occurredAt: z.iso.datetime({ precision: 9 }).meta({ description: 'By the clock of the sender.' }),
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
  message: z.string().meta({ description: `The first ${OCCURRENCE_MESSAGE_MAX} characters.` }),
}

/** An occurrence. Absent fields are left out, never null. */
const occurrenceSchema = z
  .strictObject(occurrenceFields)
  .meta({ id: 'Occurrence', description: 'An occurrence. Absent fields are left out.' })
/** An occurrence. */
export type Occurrence = z.infer<typeof occurrenceSchema>

/** Activity of a finding, which GET /v3/findings/{findingId} returns beside the finding itself. */
const findingActivitySchema = z.strictObject({
  occurrences: occurrenceCountsSchema,
  lastOccurrences: z
    .array(occurrenceSchema)
    .max(LAST_OCCURRENCES)
    .meta({ description: 'The occurrences received last, latest first.' }),
  seenIn: z
    .strictObject({
      surfaceIds: z.array(z.string()),
      serviceNames: z.array(z.string()),
      serviceVersions: z.array(z.string()).meta({ description: 'At most 20.' }),
      approximateTraceCount: z.number().int().min(0).meta({ description: 'Within about 1 %; exact for small counts.' }),
      approximateSessionCount: z.number().int().min(0),
    })
    .meta({ id: 'FindingPlaces', description: 'Where the finding has occurred.' }),
})

/** Id of a finding: `fnd_` and 26 base32 characters, a hash of workspace and fingerprint. */
export const findingIdSchema = z.string().regex(/^fnd_[a-z2-7]{26}$/, 'must be the id of a finding')

const instant = z.iso.datetime({ precision: 9 })

/** Position of a frame. Line and column count from 1, and are 0 where the stack names none (native code). */
const positionSchema = {
  function: z.string().meta({ description: 'Empty outside of functions.' }),
  file: z.string(),
  line: z.number().int().min(0),
  column: z.number().int().min(0),
}

/** A finding. */
const findingSchema = z
  .strictObject({
    id: findingIdSchema,
    surfaceId: z.string(),
    serviceName: z.string(),
    type: z.string().meta({ description: 'The value of the latest occurrence.' }),
    message: z.string().meta({ description: 'The value of the latest occurrence.' }),
    title: z.string().optional().meta({ description: 'The title that a rule gives it.' }),
    topFrame: z
      .strictObject({ function: positionSchema.function, file: positionSchema.file, line: positionSchema.line })
      .optional()
      .meta({ description: 'The innermost frame of the application in the latest occurrence, if there is one.' }),
    firstSeenAt: instant,
    lastSeenAt: instant,
    occurrenceCount: z.number().int().min(1),
    ...findingWorkFields,
  })
  .meta({ id: 'Finding', description: 'Exceptions with the same fingerprint.' })
/** A finding. */
export type Finding = z.infer<typeof findingSchema>

/** Most buckets of `occurrences` in a list. */
export const LIST_BUCKETS_MAX = 48

/** Response of GET /v3/findings, last received first. */
export const findingsPageSchema = z
  .strictObject({
    findings: z.array(findingSchema),
    nextCursor: nextCursorSchema,
    occurrences: z
      .strictObject({
        from: z.iso.datetime(),
        to: z.iso.datetime(),
        bucketSeconds: z.number().int().min(300),
        counts: z.array(z.array(z.number().int().min(0)).max(LIST_BUCKETS_MAX)),
        times: countedTimes,
      })
      .optional()
      .meta({
        description:
          'With `occurrences=true`: number of occurrences by time. `counts[i]` are those of `findings[i]`, and `counts[i][j]` is that of the bucket which begins `j * bucketSeconds` after `from`. The time is that of the request, else the last 24 hours.',
      }),
  })
  .meta({ id: 'FindingsPage' })
/** Response of GET /v3/findings. */
export type FindingsPage = z.infer<typeof findingsPageSchema>

/** Why a frame is as it was sent. */
const unresolvedReasonSchema = z.enum(['no_version', 'no_release', 'no_map', 'unusable_map', 'no_position'])
/** Why a frame is as it was sent. */
export type UnresolvedReason = z.infer<typeof unresolvedReasonSchema>

const inAppSchema = z
  .boolean()
  .meta({ description: 'Whether it is code of the application, not of the runtime, a dependency or an SDK.' })

/** A frame of a finding: the original position if a source map has it (`resolved`), else the position that was sent. */
export const findingFrameSchema = z
  .strictObject({
    ...positionSchema,
    sourceLine: z.string().optional().meta({
      description: 'The line of the original source, at most 200 characters, if the map contains the source.',
    }),
    sourceLines: z
      .strictObject({
        from: z.number().int().min(1).meta({ description: 'The number of the first line.' }),
        lines: z.array(z.string()).max(11),
      })
      .optional()
      .meta({
        description:
          'That line with five before and after it, at most 200 characters each, without their common indentation. Only frames of the application have them, the innermost first, while those of the stack have at most 32,768 characters.',
      }),
    inApp: inAppSchema,
    sourceUrl: z
      .url()
      .optional()
      .meta({ description: 'The line in the repository that the release names, if it does.' }),
    resolved: z
      .boolean()
      .meta({ description: 'Whether the position is the original one. If not, it is as it was sent.' }),
    unresolvedReason: unresolvedReasonSchema.optional().meta({
      description:
        'Why the frame of a script was as it was sent when its stack was resolved last: the exception names no version (`no_version`), no release of its version had completed source maps (`no_release`), or none for this file (`no_map`), the map is missing or cannot be parsed within its limits (`unusable_map`), or has nothing at this position (`no_position`). Not stated for code of the runtime.',
    }),
    generated: z.strictObject(positionSchema).meta({ description: 'The position as it was sent.' }),
  })
  .meta({
    id: 'FindingFrame',
    description: 'A frame of a stack. Line and column count from 1, and are 0 where the stack names none.',
  })
/** A frame of a finding. */
export type FindingFrame = z.infer<typeof findingFrameSchema>
/** A frame as it is stored. */
export type StoredFrame = Omit<FindingFrame, 'inApp' | 'sourceUrl'>

/** Most characters of a message in a stack. */
export const LINK_MESSAGE_MAX = 1_000

/** The stack of the occurrence that was received last. */
const findingStackSchema = z
  .strictObject({
    text: z.string().meta({ description: 'As it was sent.' }),
    language: z.string().optional().meta({ description: 'Such as `java`. Absent if its format is unknown.' }),
    exceptions: z
      .array(
        z.strictObject({
          relation: z
            .enum(['cause', 'context', 'suppressed', 'member'])
            .optional()
            .meta({ description: 'To the exception before it. Absent for the first one, which was reported.' }),
          type: z.string(),
          message: z.string().meta({ description: `At most ${LINK_MESSAGE_MAX} characters.` }),
          frames: z
            .array(z.strictObject({ ...positionSchema, inApp: inAppSchema }))
            .meta({ description: 'Innermost first, at most 100.' }),
        }),
      )
      .meta({ description: 'The exception that was reported, then those behind it. At most 16.' }),
  })
  .meta({ id: 'FindingStack', description: 'The stack of the occurrence received last.' })
/** The stack of the occurrence that was received last. */
export type FindingStack = z.infer<typeof findingStackSchema>

/** Why a finding is grouped as it is. Absent fields are left out, never null. */
const findingGroupingSchema = z
  .strictObject({
    by: z.enum(['client', 'rule', 'frames', 'message', 'title', 'lines']).meta({
      description:
        'The fingerprint of the client, a rule, the frames of the stack, the message, the title of a failed span, or the first lines of a stack in an unknown format.',
    }),
    rule: z.string().optional().meta({ description: 'The name of the rule.' }),
    fingerprint: z.string().optional().meta({ description: 'That of the client or of the rule.' }),
    exceptions: z
      .array(z.strictObject({ type: z.string(), frames: z.array(z.string()) }))
      .optional()
      .meta({ description: 'The exceptions that count, with their frames that do, innermost first.' }),
    type: z.string().optional().meta({ description: 'The type or title, if there are no frames.' }),
    lines: z.array(z.string()).optional(),
    message: z
      .string()
      .optional()
      .meta({ description: 'The message, if it counts, without ids, numbers and quoted texts.' }),
  })
  .meta({ id: 'FindingGrouping', description: 'Why the occurrence received last belongs to the finding.' })
/** Why a finding is grouped as it is. */
export type FindingGrouping = z.infer<typeof findingGroupingSchema>

/** Response of GET /v3/findings/{findingId}. */
export const findingAnswerSchema = z.strictObject({
  finding: z
    .strictObject({
      ...findingSchema.shape,
      frames: z.array(findingFrameSchema).meta({
        description:
          'Innermost first: those that source maps resolved, else those of `stack`. Empty if no stack was sent, or its format is unknown.',
      }),
      stack: findingStackSchema.optional(),
      mergedFindingIds: z
        .array(findingIdSchema)
        .max(MERGED_MAX)
        .optional()
        .meta({ description: 'The findings that are merged into it, if there are any. Their ids lead to it.' }),
      grouping: findingGroupingSchema,
      firstReceivedAt: z.iso.datetime().meta({ description: 'When its first occurrence arrived, by the service.' }),
      lastReceivedAt: z.iso.datetime(),
      ...findingActivitySchema.shape,
    })
    .meta({ id: 'FindingDetails' }),
})

/** Response of PATCH /v3/findings/{findingId}. */
export const findingChangedSchema = z.strictObject({ finding: findingSchema })
/** Response of PATCH /v3/findings/{findingId}. */
export type FindingChanged = z.infer<typeof findingChangedSchema>

/** A trace in which a finding occurred; `id` and `traceId` are the same. */
const findingTraceSchema = z
  .strictObject({
    id: z.string().regex(/^[0-9a-f]{32}$/),
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({ description: 'The same as `id`.' }),
    occurrenceCount: z.number().int().min(1).meta({ description: 'Number of occurrences in this trace.' }),
    lastSeenAt: instant,
  })
  .meta({ id: 'FindingTrace' })
/** A trace in which a finding occurred. */
export type FindingTrace = z.infer<typeof findingTraceSchema>

/** Response of GET /v3/findings/{findingId}/traces, newest first by when the finding was first received in them. */
export const findingTracesPageSchema = z
  .strictObject({ traces: z.array(findingTraceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'FindingTracesPage' })
/** Response of GET /v3/findings/{findingId}/traces. */
export type FindingTracesPage = z.infer<typeof findingTracesPageSchema>
