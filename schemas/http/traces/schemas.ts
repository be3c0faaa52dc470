import { z } from 'zod'
import { pageLimit } from '../page.ts'

/** 4.9: GET /v3/findings/{findingId}/traces/{traceId}. */
export const TRACE_LIMIT_MAX = 2000

export const readTraceQuerySchema = z.object({
  limit: pageLimit(TRACE_LIMIT_MAX, TRACE_LIMIT_MAX).meta({ description: 'How many spans at most.' }),
})

export const traceIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

const unixNano = z.string().regex(/^\d{1,20}$/)
const spanId = z.string().regex(/^[0-9a-f]{16}$/)

/** One span per span id (spec 2.9). What is optional is left out when absent, never null. */
export const traceSpanSchema = z
  .strictObject({
    spanId,
    parentSpanId: spanId.optional().meta({ description: 'Absent for a root.' }),
    danglingParentSpanId: spanId
      .optional()
      .meta({ description: 'Instead of `parentSpanId`, when no span of that id is retained in the trace.' }),
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
  .meta({ id: 'Span', description: 'What is absent is left out, never null.' })
export type TraceSpan = z.infer<typeof traceSpanSchema>

/** Counts and times are of the whole retained trace; `truncated` says that `spans` is not all of it. */
export const traceSchema = z
  .strictObject({
    traceId: traceIdSchema,
    spans: z.array(traceSpanSchema).meta({ description: 'By their start, then by their id.' }),
    rootCount: z.number().int().min(0).meta({ description: 'Spans that name no parent.' }),
    danglingParentCount: z
      .number()
      .int()
      .min(0)
      .meta({ description: 'Spans whose parent is not retained in the trace.' }),
    startedAtUnixNano: unixNano,
    endedAtUnixNano: unixNano,
    wallDurationMs: z.number(),
    truncated: z.boolean().meta({ description: '`spans` is not all of the trace.' }),
  })
  .meta({ id: 'Trace', description: 'Counts and times are of the whole retained trace, not of the spans shown.' })
export type Trace = z.infer<typeof traceSchema>
