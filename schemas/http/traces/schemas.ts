import { z } from 'zod'
import { pageLimit } from '../page.ts'

/** Most spans that GET /v3/findings/{findingId}/traces/{traceId} returns (docs/contract.md#trace). */
export const TRACE_LIMIT_MAX = 2000

/** Query of GET /v3/findings/{findingId}/traces/{traceId}. */
export const readTraceQuerySchema = z.object({
  limit: pageLimit(TRACE_LIMIT_MAX, TRACE_LIMIT_MAX).meta({ description: 'The maximum number of spans.' }),
})

/** Trace id of W3C, in lower-case hex. */
export const traceIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

const unixNano = z.string().regex(/^\d{1,20}$/)
const spanId = z.string().regex(/^[0-9a-f]{16}$/)

/** A span; there is one per span id (docs/contract.md#trace). Absent fields are left out, never null. */
export const traceSpanSchema = z
  .strictObject({
    spanId,
    parentSpanId: spanId.optional().meta({ description: 'Absent for a root span.' }),
    danglingParentSpanId: spanId
      .optional()
      .meta({ description: 'Replaces `parentSpanId` if no span with that id is retained in the trace.' }),
    name: z.string(),
    kind: z.enum(['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']),
    serviceName: z.string(),
    startTimeUnixNano: unixNano,
    endTimeUnixNano: unixNano,
    durationMs: z.number(),
    statusCode: z.enum(['UNSET', 'OK', 'ERROR']),
    statusMessage: z.string().optional(),
    sessionId: z.string().optional(),
    httpRoute: z.string().optional(),
    httpStatusCode: z.number().int().min(0).max(32_767).optional(),
    occurrenceCount: z.number().int().min(1).meta({ description: 'How many times the span was received.' }),
    timestamp: z.iso.datetime({ precision: 9 }).meta({ description: 'The start, with nanoseconds.' }),
  })
  .meta({ id: 'Span', description: 'A span. Absent fields are left out, never null.' })
/** A span. */
export type TraceSpan = z.infer<typeof traceSpanSchema>

/** A trace. Counts and times cover the whole retained trace, even if `spans` does not. */
export const traceSchema = z
  .strictObject({
    traceId: traceIdSchema,
    spans: z.array(traceSpanSchema).meta({ description: 'Ordered by start, then by id.' }),
    rootCount: z.number().int().min(0).meta({ description: 'Number of spans without a parent.' }),
    danglingParentCount: z
      .number()
      .int()
      .min(0)
      .meta({ description: 'Number of spans whose parent is not retained in the trace.' }),
    startedAtUnixNano: unixNano,
    endedAtUnixNano: unixNano,
    wallDurationMs: z.number(),
    truncated: z.boolean().meta({ description: 'Whether `spans` is incomplete.' }),
  })
  .meta({
    id: 'Trace',
    description:
      'A trace. Counts and times cover the whole retained trace, not only `spans`. If more than 1,000,000 spans are stored, the counts cover the first 1,000,000 by start.',
  })
/** A trace. */
export type Trace = z.infer<typeof traceSchema>
