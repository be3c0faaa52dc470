import { z } from 'zod'
import { nextCursorSchema } from './page.ts'

/** `fnd_` and 26 base32 characters: a hash of workspace and fingerprint. */
export const findingIdSchema = z.string().regex(/^fnd_[a-z2-7]{26}$/)

const instant = z.iso.datetime({ precision: 9 })

export const findingSchema = z.strictObject({
  id: findingIdSchema,
  surfaceId: z.string(),
  serviceName: z.string(),
  /** Type and message of the latest occurrence. */
  type: z.string(),
  message: z.string(),
  firstSeenAt: instant,
  lastSeenAt: instant,
  occurrenceCount: z.number().int().min(1),
})
export type Finding = z.infer<typeof findingSchema>

/** GET /v3/findings: the most recently seen first. */
export const findingsPageSchema = z.strictObject({ findings: z.array(findingSchema), nextCursor: nextCursorSchema })
export type FindingsPage = z.infer<typeof findingsPageSchema>

/** Where a frame stands. Line and column count from 1, and are 0 where the stack names none (native code). */
const placeSchema = {
  /** '' outside of any function. */
  function: z.string(),
  file: z.string(),
  line: z.number().int().min(0),
  column: z.number().int().min(0),
}

/** A frame of a finding: its original place when a source map has it (`resolved`), else the place that was sent. */
export const findingFrameSchema = z.strictObject({
  ...placeSchema,
  /** The line of the original source, at most 200 characters of it, where the map has the source. */
  sourceLine: z.string().optional(),
  resolved: z.boolean(),
  /** As it was sent. */
  generated: z.strictObject(placeSchema),
})
export type FindingFrame = z.infer<typeof findingFrameSchema>

/** GET /v3/findings/{findingId}. `frames`: innermost first; empty when no stack was sent, or none that is known. */
export const findingAnswerSchema = z.strictObject({
  finding: z.strictObject({ ...findingSchema.shape, frames: z.array(findingFrameSchema) }),
})

/** A trace in which a finding occurred; `id` and `traceId` are the same. */
export const findingTraceSchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{32}$/),
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  /** How often the finding occurred in this trace. */
  occurrenceCount: z.number().int().min(1),
  lastSeenAt: instant,
})
export type FindingTrace = z.infer<typeof findingTraceSchema>

/** GET /v3/findings/{findingId}/traces: the most recently seen first. */
export const findingTracesPageSchema = z.strictObject({
  traces: z.array(findingTraceSchema),
  nextCursor: nextCursorSchema,
})
export type FindingTracesPage = z.infer<typeof findingTracesPageSchema>
