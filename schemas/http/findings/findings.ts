import { z } from 'zod'
import { nextCursorSchema } from '../page.ts'
import { findingActivitySchema } from './finding-activity.ts'

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
