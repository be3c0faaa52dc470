import { z } from 'zod'
import { instantQuerySchema, isOrdered, orderedRange } from '../filters.ts'
import { findingIdSchema } from '../findings/schemas.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'
import { SPAN_STATUSES, traceIdSchema } from '../traces/schemas.ts'

const LIMIT_MAX = 500
const LIMIT_DEFAULT = 100

/** Kinds of entries of a timeline. Entries of the same time are in this order. */
export const TIMELINE_KINDS = ['span', 'log', 'finding', 'heartbeat', 'identity', 'replay'] as const
/** Kind of an entry of a timeline. */
export type TimelineKind = (typeof TIMELINE_KINDS)[number]

/** Most characters of texts in a timeline. Whole texts are read elsewhere. */
export const TIMELINE_TEXT = { name: 256, text: 1_000 } as const

const KINDS_RULE = `must have one or more of ${TIMELINE_KINDS.join(', ')}, separated by commas`

/** Query of GET /v3/sessions/{sessionId}/timeline. */
export const readTimelineQuerySchema = z
  .object({
    limit: pageLimit(LIMIT_MAX, LIMIT_DEFAULT),
    cursor: cursorSchema,
    kinds: z
      .string()
      .max(200)
      .transform((text, context): readonly TimelineKind[] => {
        const named = new Set(text.split(','))
        const kinds = TIMELINE_KINDS.filter(kind => named.has(kind))
        if (kinds.length === named.size) return kinds
        context.addIssue({ code: 'custom', message: KINDS_RULE })
        return z.NEVER
      })
      .optional()
      .meta({ description: `Only entries of these kinds, separated by commas: ${TIMELINE_KINDS.join(', ')}.` }),
    from: instantQuerySchema.optional().meta({ description: 'Only entries of this time or later.' }),
    to: instantQuerySchema.optional().meta({ description: 'Only entries before this time.' }),
  })
  .refine(isOrdered, orderedRange)

const text = (max: number) => z.string().meta({ description: `The first ${max} characters.` })
const name = text(TIMELINE_TEXT.name)
const spanId = z.string().regex(/^[0-9a-f]{16}$/)
const ofTrace = { traceId: traceIdSchema.optional(), spanId: spanId.optional() }
const device = { deviceId: z.string().optional(), visitorId: z.string().optional() }

const receivedCount = z
  .number()
  .int()
  .min(1)
  .meta({ id: 'ReceivedCount', description: 'How often it was received, equal in every field.' })

function entry<K extends TimelineKind, S extends z.ZodRawShape>(kind: K, id: string, at: string, shape: S) {
  return z
    .strictObject({
      kind: z.literal(kind),
      at: z.iso.datetime({ precision: 9 }).meta({ description: at }),
      receivedCount,
      surfaceId: z.string(),
      ...shape,
    })
    .meta({ id })
}

/** An entry of a timeline. Absent fields are left out, never null. */
const timelineEntrySchema = z
  .discriminatedUnion('kind', [
    entry('span', 'TimelineSpan', 'The start, by the clock of the sender.', {
      traceId: traceIdSchema,
      spanId,
      parentSpanId: spanId.optional(),
      name,
      serviceName: name,
      durationMs: z.number().min(0),
      status: z.enum(SPAN_STATUSES),
    }),
    entry('log', 'TimelineLog', 'The time of the record, else of its observation, else of its arrival.', {
      ...ofTrace,
      serviceName: name,
      severityNumber: z.number().int().min(0).max(255),
      severityText: name.optional(),
      eventName: name.optional(),
      body: text(TIMELINE_TEXT.text),
    }),
    entry('finding', 'TimelineFinding', 'When the exception occurred, by the clock of the sender.', {
      ...ofTrace,
      findingId: findingIdSchema,
      serviceName: name,
      type: name,
      message: text(TIMELINE_TEXT.text),
    }),
    entry('heartbeat', 'TimelineHeartbeat', 'When it was received.', device),
    entry('identity', 'TimelineIdentity', 'When it was received.', {
      identifier: text(TIMELINE_TEXT.text),
      source: z.strictObject({ type: name, name }),
      name: text(TIMELINE_TEXT.text).optional(),
      email: z.string().optional(),
      ...device,
    }),
    entry('replay', 'TimelineReplayChunk', 'The first event of the chunk, by the clock of the recording browser.', {
      chunkId: z.string(),
      windowId: name,
      segmentId: name,
      endsAt: z.iso.datetime().meta({ description: 'The last event.' }),
      eventCount: z.number().int().min(0),
      hasFullSnapshot: z.boolean(),
    }),
  ])
  .meta({ id: 'TimelineEntry', description: 'Something of a session. Absent fields are left out, never null.' })
/** An entry of a timeline. */
export type TimelineEntry = z.infer<typeof timelineEntrySchema>

/** Response of GET /v3/sessions/{sessionId}/timeline, oldest first. */
export const timelinePageSchema = z
  .strictObject({ entries: z.array(timelineEntrySchema).max(LIMIT_MAX), nextCursor: nextCursorSchema })
  .meta({ id: 'TimelinePage' })
/** Response of GET /v3/sessions/{sessionId}/timeline. */
export type TimelinePage = z.infer<typeof timelinePageSchema>
