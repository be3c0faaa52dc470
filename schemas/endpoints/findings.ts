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

/** GET /v3/findings/{findingId}. */
export const findingAnswerSchema = z.strictObject({ finding: findingSchema })

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
