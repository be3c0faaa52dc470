import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { wholeNumber } from './fields.ts'
import {
  attributeFilter,
  instantQuerySchema,
  isOrdered,
  orderedRange,
  serviceFilter,
  sessionFilter,
} from './filters.ts'
import type { PermittedOperation } from './operation.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from './page.ts'
import { callerProblems } from './problem-sets.ts'
import {
  askedTraceIdSchema,
  recordShape,
  spanIdSchema,
  traceIdSchema,
  unixNanoSchema,
  valueTypeSchema,
} from './traces/schemas.ts'
import { EXAMPLE_WHERE, whereFilter } from './traces/where.ts'

const LIMIT_MAX = 500
const LIMIT_DEFAULT = 100
/** A year, for traces whose records have times far apart. */
const STEP_SECONDS_MAX = 31_536_000

/** Most days of a search that names no trace. */
export const LOG_SEARCH_DAYS = 31
/** Most words of `q`. */
const WORDS_MAX = 8
/** Most steps of a histogram. */
export const HISTOGRAM_STEPS_MAX = 400

/** Severities of OTLP, each of which has four numbers: TRACE has 1 to 4. */
export const SEVERITY_LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const
/** The same after the severity of records that have none, whose number is 0. Numbers that OTLP does not define are FATAL. */
export const SEVERITIES = ['UNSPECIFIED', ...SEVERITY_LEVELS] as const
type Severity = (typeof SEVERITIES)[number]

const NOT_ZERO = 'must not consist of zeros'
const isNotZero = (id: string) => !/^0+$/.test(id)

/** Conditions of a search. */
const filter = {
  trace: askedTraceIdSchema.refine(isNotZero, NOT_ZERO).optional().meta({
    description: 'Only records of this trace. Its records of any time are found, unless a time is given.',
  }),
  span: z
    .string()
    .regex(/^[0-9a-f]{16}$/, 'must have 16 hex digits in lower case')
    .refine(isNotZero, NOT_ZERO)
    .optional()
    .meta({ description: 'Only records of the span with this id.' }),
  session: sessionFilter.meta({ description: 'Only records whose attribute `session.id` is this.' }),
  service: serviceFilter.meta({
    description: 'Only records of this `service.name`, as it was sent. If empty, only those without one.',
  }),
  severity: z.enum(SEVERITY_LEVELS).optional().meta({ description: 'Only records of this severity or a higher one.' }),
  q: z
    .string()
    .max(200)
    .transform(wordsOf)
    .refine(
      words => words.length > 0,
      'must have a word, which consists of letters, digits or characters outside of ASCII',
    )
    .refine(words => words.length <= WORDS_MAX, `must have at most ${WORDS_MAX} words`)
    .optional()
    .meta({
      description: `Only records whose body has all of these words, at most ${WORDS_MAX}. The case of ASCII letters is ignored.`,
    }),
  attribute: attributeFilter.meta({
    description:
      'Only records with this attribute, as `key=value`. The first `=` ends the key, and the value is its text.',
  }),
  where: whereFilter.meta({
    description: 'Only records whose attributes meet all of these conditions, a JSON list as in `GET /v3/traces`.',
  }),
  from: instantQuerySchema.optional().meta({
    description: 'Only records of this time or later: an hour before `to` if absent.',
  }),
  to: instantQuerySchema.optional().meta({
    description:
      'Only records before this time: the current one, with five minutes for clocks that are ahead, if absent.',
  }),
  receivedFrom: instantQuerySchema.optional().meta({
    description: 'Only records received at or after this time, by the clock of the service.',
  }),
}

/** Returns the distinct words of a text, divided and in lower case as the index of log bodies has them (`logs_by_token`). */
function wordsOf(text: string): string[] {
  const words = text.split(/[^0-9A-Za-z\u0080-\uffff]+/).filter(word => word !== '')
  return [...new Set(words.map(word => word.replaceAll(/[A-Z]+/g, letters => letters.toLowerCase())))]
}

/** Query of GET /v3/logs. */
export const listLogsQuerySchema = z
  .object({ ...filter, limit: pageLimit(LIMIT_MAX, LIMIT_DEFAULT), cursor: cursorSchema })
  .refine(isOrdered, orderedRange)
/** Query of GET /v3/logs. */
export type ListLogsQuery = z.infer<typeof listLogsQuerySchema>
/** The conditions of a search. */
export type LogsQuery = Omit<ListLogsQuery, 'limit' | 'cursor'>

/** Query of GET /v3/logs/histogram. */
export const logHistogramQuerySchema = z
  .object({
    ...filter,
    step: wholeNumber(1, STEP_SECONDS_MAX)
      .optional()
      .meta({
        description: `Seconds of a step, at most ${HISTOGRAM_STEPS_MAX} of which are in the time. About a hundredth of the time if absent.`,
      }),
  })
  .refine(isOrdered, orderedRange)

/** A log record. Absent fields are left out, never null. */
const logRecordSchema = z
  .strictObject({
    timestamp: z.iso.datetime({ precision: 9 }).meta({
      description:
        'The time by which records are searched and ordered: `timeUnixNano`, else `observedTimeUnixNano`, else the arrival.',
    }),
    timeUnixNano: unixNanoSchema.meta({
      description: 'When it happened, by the clock of the sender. 0 if that is unknown.',
    }),
    observedTimeUnixNano: unixNanoSchema.meta({ description: 'When it was observed. 0 if that is unknown.' }),
    receivedAt: z.iso.datetime(),
    surfaceId: z.string(),
    serviceName: z.string(),
    serviceVersion: z.string(),
    severity: z.enum(SEVERITIES),
    severityNumber: z.number().int().min(0).max(255),
    severityText: z.string(),
    body: z.string().meta({ description: 'The body as text: lists and maps as JSON, bytes as base64.' }),
    bodyType: valueTypeSchema,
    eventName: z.string().optional(),
    traceId: traceIdSchema.optional(),
    spanId: spanIdSchema.optional(),
    sessionId: z.string().optional(),
    ...recordShape,
    isCut: z.literal(true).optional().meta({
      description: 'Present if the record has more than 4 MiB, and its body and attributes are shown in part.',
    }),
  })
  .meta({ id: 'LogRecord', description: 'A log record. Absent fields are left out, never null.' })
/** A log record. */
export type LogRecord = z.infer<typeof logRecordSchema>

const boundOfSearch = (bound: string) =>
  z.iso
    .datetime()
    .optional()
    .meta({
      description: `The ${bound} of the search, also if the request left it open. Absent if there is none.`,
    })

/** Response of GET /v3/logs. */
export const logsPageSchema = z
  .strictObject({
    from: boundOfSearch('start'),
    to: boundOfSearch('end'),
    logs: z.array(logRecordSchema).max(LIMIT_MAX).meta({ description: 'Newest first.' }),
    nextCursor: nextCursorSchema,
  })
  .meta({ id: 'LogsPage' })
/** Response of GET /v3/logs. */
export type LogsPage = z.infer<typeof logsPageSchema>

const countsSchema = z.array(z.number().int().min(0)).min(1).max(HISTOGRAM_STEPS_MAX)

/** Response of GET /v3/logs/histogram. */
export const logHistogramSchema = z
  .strictObject({
    from: z.iso.datetime().meta({ description: 'The start of the search. Records before it are not counted.' }),
    to: z.iso.datetime().meta({ description: 'The end of the search. Records from it on are not counted.' }),
    startsAt: z.iso.datetime().meta({ description: 'The start of the first step, at or before `from`.' }),
    stepSeconds: z.number().int().min(1),
    total: z.number().int().min(0),
    counts: z
      .strictObject(
        Object.fromEntries(SEVERITIES.map(name => [name, countsSchema])) as Record<Severity, typeof countsSchema>,
      )
      .meta({
        description: 'Number of records by severity and step: the step `i` begins `i * stepSeconds` after `startsAt`.',
      }),
  })
  .meta({ id: 'LogHistogram', description: 'Number of log records over time.' })
/** Response of GET /v3/logs/histogram. */
export type LogHistogram = z.infer<typeof logHistogramSchema>

/** Time of the examples of a search. */
const EXAMPLE_SEARCH = { from: '2026-09-21T14:00:00Z', to: '2026-09-21T14:20:00Z' } as const

const exampleRange = { from: '2026-09-21T14:00:00.000Z', to: '2026-09-21T14:20:00.000Z' } as const
const none = [0, 0, 0, 0]
/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  listLogs: {
    ...exampleRange,
    logs: [
      {
        timestamp: EXAMPLE_TIMES.startedAt,
        timeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
        observedTimeUnixNano: '0',
        receivedAt: EXAMPLE_TIMES.receivedAt,
        surfaceId: EXAMPLE.surfaceId,
        serviceName: EXAMPLE.serviceName,
        serviceVersion: EXAMPLE.version,
        severity: 'WARN',
        severityNumber: 13,
        severityText: 'WARNING',
        body: 'the cart is empty',
        bodyType: 'string',
        traceId: EXAMPLE.traceId,
        spanId: EXAMPLE.spanId,
        sessionId: EXAMPLE.sessionId,
        flags: 0,
        attributes: [
          { key: 'http.route', type: 'string', value: '/cart' },
          { key: 'session.id', type: 'string', value: EXAMPLE.sessionId },
        ],
        droppedAttributesCount: 0,
        resource: {
          attributes: { 'service.name': EXAMPLE.serviceName },
          droppedAttributesCount: 0,
          schemaUrl: '',
        },
        scope: { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' },
      },
    ],
    nextCursor: null,
  },
  readLogHistogram: {
    ...exampleRange,
    startsAt: exampleRange.from,
    stepSeconds: 300,
    total: 1,
    counts: {
      ...{ UNSPECIFIED: none, TRACE: none, DEBUG: none, INFO: none, ERROR: none, FATAL: none },
      WARN: [0, 0, 1, 0],
    },
  },
} as const

const { limit, cursor, ...conditions } = listLogsQuerySchema.shape

const exampleFilter = {
  trace: conditions.trace.meta({ example: EXAMPLE.traceId }),
  span: conditions.span.meta({ example: EXAMPLE.spanId }),
  session: conditions.session.meta({ example: EXAMPLE.sessionId }),
  service: conditions.service.meta({ example: EXAMPLE.serviceName }),
  severity: conditions.severity.meta({ example: 'WARN' }),
  q: conditions.q.meta({ example: 'cart empty' }),
  attribute: conditions.attribute.meta({ example: 'http.route=/cart' }),
  where: conditions.where.meta({ example: EXAMPLE_WHERE }),
  from: conditions.from.meta({ example: EXAMPLE_SEARCH.from }),
  to: conditions.to.meta({ example: EXAMPLE_SEARCH.to }),
  receivedFrom: conditions.receivedFrom.meta({ example: EXAMPLE_SEARCH.from }),
}

const logsRead = {
  method: 'GET',
  service: 'api-analytics',
  tag: 'logs',
  credentials: READER,
  permission: 'org:telemetry:read',
  problems: callerProblems,
} as const

/** Lists log records (docs/api/logs.md#logs). */
export const listLogs: PermittedOperation = {
  ...logsRead,
  operationId: 'listLogs',
  path: '/v3/logs',
  summary: 'List the log records of the workspace, newest first',
  description: 'A page may have fewer records than `limit`, because it has room for about 1 MiB.',
  parameters: { query: z.object({ ...exampleFilter, limit, cursor }) },
  success: {
    status: 200,
    description: 'A page of log records.',
    contents: { 'application/json': { schema: logsPageSchema, example: ANSWERS.listLogs } },
  },
}

/** Counts log records over time (docs/api/logs.md#logs). */
export const readLogHistogram: PermittedOperation = {
  ...logsRead,
  operationId: 'readLogHistogram',
  path: '/v3/logs/histogram',
  summary: 'Count the log records of the workspace over time, by severity',
  description: 'The conditions are those of the list of log records.',
  parameters: {
    query: z.object({ ...exampleFilter, step: logHistogramQuerySchema.shape.step.meta({ example: 300 }) }),
  },
  success: {
    status: 200,
    description: 'The number of records of each step.',
    contents: { 'application/json': { schema: logHistogramSchema, example: ANSWERS.readLogHistogram } },
  },
}
