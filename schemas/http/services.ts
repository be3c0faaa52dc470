import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { instantQuerySchema, isOrdered, orderedRange, surfaceFilter } from './filters.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems } from './problem-sets.ts'

/** Most days between `from` and `to`. */
export const SERVICES_RANGE_DAYS_MAX = 31
/** Days before the end of a range in which the last release is looked for. */
export const LAST_RELEASE_DAYS = 7
/** Most operations and versions that the response about a service shows. */
export const OPERATIONS_MAX = 200
/** Kinds of spans by their numbers in OTLP. */
export const SPAN_KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const

/** Range of the examples. */
export const EXAMPLE_RANGE = { from: '2026-09-21T13:14:00.000Z', to: '2026-09-21T14:14:00.000Z' } as const

/** Parameters that choose spans. */
export const ofSpans = {
  surface: surfaceFilter.meta({
    description: 'Only spans of the surface with this id.',
    example: EXAMPLE.surfaceId,
  }),
  environment: z.string().max(256).optional().meta({
    description: 'Only spans with this `deployment.environment.name`. If empty, only those without one.',
    example: '',
  }),
  from: instantQuerySchema.optional().meta({
    description: 'Only spans that ended in this minute or later. An hour before `to` unless given.',
    example: EXAMPLE_RANGE.from,
  }),
  to: instantQuerySchema.optional().meta({
    description: `Only spans that ended before this time, up to the whole minute. At most ${SERVICES_RANGE_DAYS_MAX} days after \`from\`. Now unless given.`,
    example: EXAMPLE_RANGE.to,
  }),
}

/** Query of GET /v3/services. */
export const listServicesQuerySchema = pageQuerySchema.extend(ofSpans).refine(isOrdered, orderedRange)
/** Query of GET /v3/services/{name}. */
export const readServiceQuerySchema = z.object(ofSpans).refine(isOrdered, orderedRange)

const count = z.number().int().min(0)
const milliseconds = z.number().min(0)

/** Durations of spans. */
export const durationsSchema = z
  .strictObject({ average: milliseconds, p50: milliseconds, p95: milliseconds, p99: milliseconds })
  .nullable()
  .meta({ id: 'Durations', description: 'Null without spans. Quantiles are within 1.1 % of the exact ones.' })

const rates = {
  spans: count,
  errors: count.meta({ description: 'Those with the status `ERROR`.' }),
  durationMs: durationsSchema,
}
const ratesSchema = z.strictObject(rates).meta({ id: 'SpanRates' })
/** Spans with their failures and durations. */
export type SpanRates = z.infer<typeof ratesSchema>

const named = {
  name: z.string().meta({ description: 'The `service.name`.' }),
  counts: z.enum(['entries', 'all']).meta({
    description: 'The spans that count: those of servers and consumers, or all spans of a service without such spans.',
  }),
  ...rates,
}
/** A service of the map. */
export const mapNodeSchema = z.strictObject(named).meta({ id: 'ServiceOfMap' })

const service = {
  ...named,
  dayBefore: ratesSchema.meta({ description: 'The same of the range a day earlier.' }),
  lastRelease: z
    .strictObject({ version: z.string(), at: z.iso.datetime(), before: ratesSchema })
    .nullable()
    .meta({
      id: 'LastRelease',
      description: `The version whose first span was latest, in the ${LAST_RELEASE_DAYS} days before the end of the range, and the same of a time as long as the range before it. Null without another version before.`,
    }),
  steps: z
    .strictObject({
      spans: z.array(count),
      errors: z.array(count),
      p95Ms: z.array(milliseconds.nullable()),
    })
    .meta({ id: 'ServiceSteps', description: 'One entry for each step.' }),
}
const serviceSchema = z.strictObject(service).meta({ id: 'Service' })
/** A service with its rates. */
export type Service = z.infer<typeof serviceSchema>

/** The range of a response. */
export const rangeOfResponse = {
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  stepSeconds: count.meta({ description: 'Length of a step. Steps begin at multiples of it since 1970.' }),
}

/** Response of GET /v3/services. */
export const servicesPageSchema = z
  .strictObject({ ...rangeOfResponse, services: z.array(serviceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ServicesPage', description: 'Services, those with most spans first.' })
/** Response of GET /v3/services. */
export type ServicesPage = z.infer<typeof servicesPageSchema>

/** Response of GET /v3/services/{name}. */
export const serviceDetailsSchema = z
  .strictObject({
    ...rangeOfResponse,
    ...service,
    operations: z
      .array(
        z
          .strictObject({
            name: z
              .string()
              .meta({ description: 'Name of the spans, or their route if the name does not contain it.' }),
            kind: z.enum(SPAN_KINDS),
            ...rates,
            slowest: z.strictObject({ traceId: z.string(), durationMs: milliseconds }),
          })
          .meta({ id: 'ServiceOperation' }),
      )
      .meta({ description: `At most ${OPERATIONS_MAX}, those first that took most time together.` }),
    versions: z
      .array(
        z
          .strictObject({
            version: z.string(),
            environment: z.string(),
            firstAt: z.iso.datetime().meta({ description: 'Minute of the first of its spans in the range.' }),
            lastAt: z.iso.datetime(),
            ...rates,
          })
          .meta({ id: 'ServiceVersion' }),
      )
      .meta({ description: `At most ${OPERATIONS_MAX}, the one with the latest span first.` }),
  })
  .meta({ id: 'ServiceDetails' })
/** Response of GET /v3/services/{name}. */
export type ServiceDetails = z.infer<typeof serviceDetailsSchema>

const durationMs = { average: 20.5, p50: 17.2, p95: 61.9, p99: 120.4 }
const EXAMPLE_RATES = { spans: 1_204, errors: 12, durationMs }
const exampleRange = { ...EXAMPLE_RANGE, stepSeconds: 1_800 }
const exampleService: Service = {
  ...{ name: EXAMPLE.serviceName, counts: 'entries', ...EXAMPLE_RATES },
  dayBefore: { spans: 0, errors: 0, durationMs: null },
  lastRelease: null,
  steps: { spans: [100, 604, 500], errors: [0, 12, 0], p95Ms: [60.1, 63.4, 61.2] },
}

/** Lists services (docs/api/services.md#services). */
export const listServices: PermittedOperation = {
  operationId: 'listServices',
  method: 'GET',
  path: '/v3/services',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'List services with their rate of spans, errors and durations',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: listServicesQuerySchema },
  success: {
    status: 200,
    description: 'A page of services.',
    contents: {
      'application/json': {
        schema: servicesPageSchema,
        example: { ...exampleRange, services: [exampleService], nextCursor: null },
      },
    },
  },
  problems: callerProblems,
}

/** Reads a service (docs/api/services.md#service). */
export const readService: PermittedOperation = {
  operationId: 'readService',
  method: 'GET',
  path: '/v3/services/:name',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read the operations and versions of a service, with their rates',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: {
    path: z.object({ name: z.string().meta({ description: 'The `service.name`.', example: EXAMPLE.serviceName }) }),
    query: readServiceQuerySchema,
  },
  success: {
    status: 200,
    description: 'The service.',
    contents: {
      'application/json': {
        schema: serviceDetailsSchema,
        example: {
          ...{ ...exampleRange, ...exampleService },
          operations: [
            {
              ...{ name: 'GET /cart', kind: 'server', ...EXAMPLE_RATES },
              slowest: { traceId: EXAMPLE.traceId, durationMs: 131.2 },
            },
          ],
          versions: [
            {
              ...{ version: '1.4.2', environment: 'production', ...EXAMPLE_RATES },
              ...{ firstAt: EXAMPLE_RANGE.from, lastAt: EXAMPLE_TIMES.createdAt },
            },
          ],
        },
      },
    },
  },
  problems: callerProblems,
}
