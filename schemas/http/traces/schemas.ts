import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
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

/** A trace id by which a client reads. One of 64 bits, as Zipkin and old SDKs have it, is stored with zeros before it. */
export const askedTraceIdSchema = z
  .string()
  .regex(/^(?:[0-9a-f]{16}){1,2}$/, 'must have 32 hex digits in lower case')
  .transform(id => id.padStart(32, '0'))
  .meta({ description: 'The W3C trace id. One of 64 bits may have its 16 hex digits.', example: EXAMPLE.traceId })

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
const traceSpanSchema = z
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
    durationMs: z.number().meta({ description: 'From start to end.' }),
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
    wallDurationMs: z.number().meta({ description: 'From the first start to the last end.' }),
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
  )
    .refine(ids => ids.length > 0, 'must have at least one item')
    .meta({ minItems: 1 }),
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
const droppedCount = z.number().int().min(0).meta({ id: 'Dropped', description: 'How many the sender left out.' })
const flags = z.number().int().min(0).meta({ description: 'Flags of OTLP.' })

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
const spanDetailsSchema = traceSpanSchema
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

/** Why spans of a trace are missing, or may be. */
const missingCauseSchema = z
  .enum([
    'in_flight',
    'dead_lettered',
    'refused',
    'expired',
    'erased',
    'dropped',
    'cut',
    'not_received_from_other_service',
    'not_received_from_this_service',
    'unknown',
  ])
  .meta({
    id: 'MissingCause',
    description:
      'Why spans are missing, or may be. in_flight: accepted requests are not stored yet. dead_lettered, refused: requests of the workspace at the time of the trace were. expired: the trace begins where the retention ends, or spans of its time left with a shorter retention. erased: spans of its time were erased with a person or a session. dropped: rules of the workspace dropped spans of the trace. cut: the response is limited. not_received_…: nothing was lost here, and the parent is of another service or of that of the child, as OTLP’s flags say.',
  })
/** Why spans of a trace are missing, or may be. */
export type MissingCause = z.infer<typeof missingCauseSchema>

const traceLossSchema = z
  .strictObject({
    cause: z.enum(['dead_lettered', 'refused', 'expired', 'erased', 'dropped']),
    surfaceId: z.string(),
    isNear: z.boolean().meta({
      description:
        'Whether the surface has sent spans of the trace, and the loss is from at most 60 seconds before or after they arrived.',
    }),
    rule: z.string().optional().meta({ description: 'The rule that has dropped the spans.' }),
    count: z.number().int().min(1).meta({
      description: 'Requests that were dead-lettered or refused, or spans that expired, were erased or dropped.',
    }),
    receivedFrom: z.iso
      .datetime()
      .meta({ description: 'Refused requests and deleted spans are counted by whole hours.' }),
    receivedTo: z.iso.datetime(),
  })
  .meta({
    id: 'TraceLoss',
    description:
      'A loss of a surface of the workspace at the time of a trace. It may be of other traces, unless rules dropped it.',
  })

const completenessShape = {
  state: z.enum(['complete', 'no_gaps', 'incomplete']).meta({
    description:
      'complete: no parent is missing, everything that was accepted before `settledBefore` is included, and no request was lost at the time of the trace. no_gaps: no parent is missing, and `reasons` say why it is not proved that nothing else is. incomplete: parents are missing, or the trace was cut.',
  }),
  settledBefore: z.iso
    .datetime()
    .optional()
    .meta({ description: 'Everything that was accepted before this time is included. Absent if it is not known.' }),
  reasons: z.array(missingCauseSchema).meta({ description: 'Why the trace is not complete. Empty if it is.' }),
  losses: z
    .array(traceLossSchema)
    .max(20)
    .meta({ description: 'Losses at its time, the near ones first, then the largest. Empty if it is complete.' }),
}

/** How complete a trace is. */
const completenessSchema = z
  .strictObject(completenessShape)
  .meta({ id: 'Completeness', description: 'How complete a trace is.' })
/** How complete a trace is. */
export type Completeness = z.infer<typeof completenessSchema>

/** A parent that is not retained in its trace. */
const missingParentSchema = z
  .strictObject({
    spanId: spanIdSchema,
    firstChild: z.number().int().min(0).meta({ description: 'Index of the first span that names it.' }),
    childCount: z.number().int().min(1),
    isRemote: z.boolean().optional().meta({
      description: 'Whether the parent is of another service, as its first child states. Absent if it does not.',
    }),
    cause: missingCauseSchema,
  })
  .meta({ id: 'MissingParent', description: 'A parent that is not retained in its trace.' })

const spanIndexes = z.array(z.number().int().min(0))
const wholeNumbers = z.array(z.number().int())

/** The columns of a trace. Every column of `spans` has an entry for each span, in the order of their starts and ids. */
export const traceColumnsSchema = z
  .strictObject({
    traceId: traceIdSchema,
    spanCount: z.number().int().min(1),
    rootCount: z.number().int().min(0).meta({ description: 'Number of spans without a parent.' }),
    danglingParentCount: z
      .number()
      .int()
      .min(0)
      .meta({ description: 'Number of spans whose parent is not retained in the trace.' }),
    startedAtUnixNano: unixNanoSchema,
    endedAtUnixNano: unixNanoSchema,
    wallDurationMs: z.number().meta({ description: 'From the first start to the last end.' }),
    truncated: z
      .boolean()
      .meta({ description: 'Whether more than 1,000,000 stored spans made the columns incomplete.' }),
    names: z.array(z.string()).meta({ description: 'The distinct names of spans, cut after 256 characters.' }),
    services: z.array(z.string()).meta({ description: 'The distinct names of services, cut after 256 characters.' }),
    repeated: z
      .strictObject({ spans: spanIndexes, counts: z.array(z.number().int().min(2)) })
      .meta({ description: 'Spans that were received more than once, and how often.' }),
    completeness: completenessSchema,
    missingParents: z
      .array(missingParentSchema)
      .meta({ description: 'Parents that are not retained in the trace, the first 1,000.' }),
    spans: z.strictObject({
      ids: z
        .string()
        .regex(/^[0-9a-f]*$/)
        .meta({ description: 'The span ids one after the other, 16 hex digits each.' }),
      startDeltaNanos: wholeNumbers.meta({
        description:
          'Nanoseconds from the start of the span before. 0 for the first, which starts at `startedAtUnixNano`.',
      }),
      durationNanos: wholeNumbers.meta({ description: 'Negative for a span that ends before it starts.' }),
      parents: wholeNumbers.meta({
        description: 'Index of the parent. -1 for a root, -2 if the parent is not retained in the trace.',
      }),
      names: wholeNumbers.meta({ description: 'Index in `names`. -1 if the distinct names have more than 4 MiB.' }),
      services: wholeNumbers.meta({ description: 'Index in `services`. -1 if these have more than 1 MiB.' }),
      kinds: wholeNumbers.meta({ description: 'SpanKind of OTLP.' }),
      statuses: wholeNumbers.meta({ description: 'StatusCode of OTLP.' }),
      flags: wholeNumbers.meta({ description: 'Flags of OTLP.' }),
    }),
  })
  .meta({ id: 'TraceColumns', description: 'All spans of a trace as columns, without their details.' })
/** The columns of a trace. */
export type TraceColumns = z.infer<typeof traceColumnsSchema>

/** Response of GET /v3/traces/{traceId}/completeness. */
export const traceCompletenessSchema = z.strictObject({
  traceId: traceIdSchema,
  ...completenessShape,
  spanCount: z.number().int().min(1),
  rootCount: z.number().int().min(0),
  danglingParentCount: z.number().int().min(0),
  missingParents: z.array(missingParentSchema).meta({ description: 'The first 1,000.' }),
})
/** Response of GET /v3/traces/{traceId}/completeness. */
export type TraceCompleteness = z.infer<typeof traceCompletenessSchema>
