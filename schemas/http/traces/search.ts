import { z } from 'zod'
import { DAY_MS } from '../../units.ts'
import { wholeNumber } from '../fields.ts'
import {
  attributeFilter,
  flagFilter,
  instantQuerySchema,
  isOrdered,
  orderedRange,
  serviceFilter,
  sessionFilter,
} from '../filters.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'
import { SPAN_STATUSES, spanIdSchema, traceIdSchema, unixNanoSchema } from './schemas.ts'
import { whereFilter } from './where.ts'

const LIMIT_MAX = 100
const LIMIT_DEFAULT = 20
const WEEK_MS = 7 * DAY_MS

/** Query of GET /v3/traces. */
export const listTracesQuerySchema = z
  .object({
    limit: pageLimit(LIMIT_MAX, LIMIT_DEFAULT),
    cursor: cursorSchema,
    service: serviceFilter.meta({
      description: 'Only traces with a span of this `service.name`, as it was sent. If empty, of spans without one.',
    }),
    name: z.string().max(1024).optional().meta({
      description: 'Only traces with a span of this name.',
    }),
    status: z.enum(SPAN_STATUSES).optional().meta({
      description: 'Only traces with a span of this status.',
    }),
    minDurationMs: wholeNumber(0, WEEK_MS).optional().meta({
      description: 'Only traces with a span that took at least this time.',
    }),
    attribute: attributeFilter.meta({
      description: 'Only traces with a span that has this attribute, as `key=value`.',
    }),
    where: whereFilter.meta({
      description:
        'Only traces with a span whose attributes meet all of these conditions, a JSON list of at most 8. Operators are `=`, `!=`, `>`, `>=`, `<`, `<=`, `contains`, `exists` and `absent`.',
    }),
    session: sessionFilter.meta({ description: 'Only traces with a span of the session with this id.' }),
    hasFinding: flagFilter.meta({
      description: 'Only traces in which a finding occurred.',
    }),
    from: instantQuerySchema.optional().meta({ description: 'Only spans that started at this time or later.' }),
    to: instantQuerySchema.optional().meta({ description: 'Only spans that started before this time.' }),
  })
  .refine(isOrdered, orderedRange)
/** Query of GET /v3/traces. */
export type ListTracesQuery = z.infer<typeof listTracesQuerySchema>

/** A trace of a list. */
const foundTraceSchema = z
  .strictObject({
    traceId: traceIdSchema,
    firstSpan: z
      .strictObject({
        spanId: spanIdSchema,
        parentSpanId: spanIdSchema.optional().meta({ description: 'Present if no root span is retained.' }),
        name: z.string(),
        serviceName: z.string(),
        httpRoute: z.string().optional().meta({ description: 'Its `http.route`.' }),
        httpStatusCode: z.int().optional().meta({ description: 'Its `http.response.status_code`.' }),
      })
      .meta({ description: 'The first root span. If no root span is retained, the first span.' }),
    startedAtUnixNano: unixNanoSchema,
    endedAtUnixNano: unixNanoSchema,
    wallDurationMs: z.number().meta({ description: 'From the first start to the last end.' }),
    spanCount: z.number().int().min(1),
    errorCount: z.number().int().min(0),
    services: z.array(z.string()).meta({ description: 'The first 20 names of services, in alphabetical order.' }),
    serviceCount: z.number().int().min(1),
  })
  .meta({ id: 'FoundTrace', description: 'A trace of a list. Times and counts are of the whole retained trace.' })
/** A trace of a list. */
export type FoundTrace = z.infer<typeof foundTraceSchema>

/** Response of GET /v3/traces. */
export const tracesPageSchema = z.strictObject({ traces: z.array(foundTraceSchema), nextCursor: nextCursorSchema })
/** Response of GET /v3/traces. */
export type TracesPage = z.infer<typeof tracesPageSchema>
