import { z } from 'zod'
import { wholeNumber } from './page.ts'

/** 4.9: GET /v3/findings/{findingId}/traces/{traceId}. */
export const TRACE_LIMIT_MAX = 2000

export const readTraceQuerySchema = z.object({
  limit: wholeNumber(1, TRACE_LIMIT_MAX).default(TRACE_LIMIT_MAX),
})

export const traceIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

const unixNano = z.string().regex(/^\d{1,20}$/)
const spanId = z.string().regex(/^[0-9a-f]{16}$/)

/** One span per span id (spec 2.9). What is optional is left out when absent, never null. */
export const traceSpanSchema = z.strictObject({
  spanId,
  parentSpanId: spanId.optional(),
  /** Instead of `parentSpanId`, when no span of that id is retained in the trace. */
  danglingParentSpanId: spanId.optional(),
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
  /** How many times the span was received. */
  occurrenceCount: z.number().int().min(1),
  /** The start as RFC 3339 with nanoseconds. */
  timestamp: z.string(),
})
export type TraceSpan = z.infer<typeof traceSpanSchema>

/** Counts and times are of the whole retained trace; `truncated` says that `spans` is not all of it. */
export const traceSchema = z.strictObject({
  traceId: traceIdSchema,
  spans: z.array(traceSpanSchema),
  rootCount: z.number().int().min(0),
  danglingParentCount: z.number().int().min(0),
  startedAtUnixNano: unixNano,
  endedAtUnixNano: unixNano,
  wallDurationMs: z.number(),
  truncated: z.boolean(),
})
export type Trace = z.infer<typeof traceSchema>
