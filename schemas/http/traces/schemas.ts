import { z } from 'zod'
import { exactObject, jsonObjectSchema, listOf, text } from '../fields.ts'
import { pageLimit } from '../page.ts'

/** Most spans that GET /v3/findings/{findingId}/traces/{traceId} returns (docs/api/findings.md#trace). */
export const TRACE_LIMIT_MAX = 2000

/** Query of GET /v3/findings/{findingId}/traces/{traceId}. */
export const readTraceQuerySchema = z.object({
  limit: pageLimit(TRACE_LIMIT_MAX, TRACE_LIMIT_MAX).meta({ description: 'The maximum number of spans.' }),
})

/** Trace id of W3C, in lower-case hex. */
export const traceIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

/** Largest status of HTTP that is shown. */
export const HTTP_STATUS_CODE_MAX = 32_767

/** Unix nanoseconds, decimal. */
export const unixNanoSchema = z.string().regex(/^\d{1,20}$/)
/** Span id of W3C, in lower-case hex. */
export const spanIdSchema = z.string().regex(/^[0-9a-f]{16}$/)

/** Names of OTLP's SpanKind by their numbers. A number that OTLP does not define is shown as the first. */
export const SPAN_KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
/** Names of OTLP's StatusCode in the same way. */
export const SPAN_STATUSES = ['UNSET', 'OK', 'ERROR'] as const

/** A span; there is one per span id (docs/api/findings.md#trace). Absent fields are left out, never null. */
export const traceSpanSchema = z
  .strictObject({
    spanId: spanIdSchema,
    parentSpanId: spanIdSchema.optional().meta({ description: 'Absent for a root span.' }),
    danglingParentSpanId: spanIdSchema
      .optional()
      .meta({ description: 'Replaces `parentSpanId` if no span with that id is retained in the trace.' }),
    name: z.string(),
    kind: z.enum(SPAN_KINDS),
    serviceName: z.string(),
    startTimeUnixNano: unixNanoSchema,
    endTimeUnixNano: unixNanoSchema,
    durationMs: z.number(),
    statusCode: z.enum(SPAN_STATUSES),
    statusMessage: z.string().optional(),
    sessionId: z.string().optional(),
    httpRoute: z.string().optional(),
    httpStatusCode: z.number().int().min(0).max(HTTP_STATUS_CODE_MAX).optional(),
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
    startedAtUnixNano: unixNanoSchema,
    endedAtUnixNano: unixNanoSchema,
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

/** Most spans whose details one request reads. */
export const SPAN_DETAILS_MAX = 200

/** Body of POST /v3/traces/{traceId}/spans. */
export const readSpansBodySchema = exactObject({
  spanIds: listOf(
    text.regex(/^[0-9a-f]{16}$/, 'must have 16 hex digits in lower case'),
    SPAN_DETAILS_MAX,
    'must be a list of span ids',
  ).refine(ids => ids.length > 0, 'must have at least one item'),
})

/** Type of a value of OTLP. */
export const valueTypeSchema = z.enum(['empty', 'string', 'bool', 'int', 'double', 'array', 'kvlist', 'bytes'])

const attribute = z
  .strictObject({
    key: z.string(),
    type: valueTypeSchema,
    value: z.string().meta({ description: 'The value as text: lists and maps as JSON, bytes as base64.' }),
  })
  .meta({ id: 'Attribute', description: 'An attribute of OTLP.' })
const attributes = z.array(attribute)
const droppedCount = z.number().int().min(0)
const flags = z.number().int().min(0)

/** Members of spans and of log records: attributes, and the resource and the scope that sent them. */
export const recordShape = {
  attributes,
  droppedAttributesCount: droppedCount,
  flags,
  resource: z.strictObject({
    attributes: jsonObjectSchema,
    droppedAttributesCount: droppedCount,
    schemaUrl: z.string(),
  }),
  scope: z.strictObject({
    name: z.string(),
    version: z.string(),
    attributes: jsonObjectSchema,
    droppedAttributesCount: droppedCount,
    schemaUrl: z.string(),
  }),
}

/** A span with everything that was received. */
export const spanDetailsSchema = traceSpanSchema
  .omit({ danglingParentSpanId: true })
  .extend({
    surfaceId: z.string(),
    receivedAt: z.iso.datetime(),
    traceState: z.string(),
    ...recordShape,
    events: z.array(
      z.strictObject({
        timeUnixNano: unixNanoSchema,
        name: z.string(),
        attributes,
        droppedAttributesCount: droppedCount,
      }),
    ),
    droppedEventsCount: droppedCount,
    links: z.array(
      z.strictObject({
        traceId: z.string(),
        spanId: z.string(),
        traceState: z.string(),
        flags,
        attributes,
        droppedAttributesCount: droppedCount,
      }),
    ),
    droppedLinksCount: droppedCount,
    findingIds: z.array(z.string()).meta({ description: 'The findings of its exceptions, at most eight.' }),
  })
  .meta({ id: 'SpanDetails', description: 'A span with everything that was received.' })
/** A span with everything that was received. */
export type SpanDetails = z.infer<typeof spanDetailsSchema>

/** Response of POST /v3/traces/{traceId}/spans. */
export const spansSchema = z.strictObject({
  traceId: traceIdSchema,
  spans: z.array(spanDetailsSchema).meta({ description: 'In the order of the request.' }),
  rest: z.array(spanIdSchema).meta({ description: 'Spans for which this response had no room: ask for them again.' }),
  tooLarge: z.array(spanIdSchema).meta({ description: 'Spans of more than 4 MiB, which no response has room for.' }),
  absent: z.array(spanIdSchema).meta({ description: 'Spans that are not retained in the trace.' }),
})
/** Response of POST /v3/traces/{traceId}/spans. */
export type Spans = z.infer<typeof spansSchema>
