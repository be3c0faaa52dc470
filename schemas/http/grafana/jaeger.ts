import { z } from 'zod'
import { DAY_MS } from '../../units.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { SERVICES_RANGE_DAYS_MAX } from '../services.ts'
import { GO_DURATION, type NamedRead, toolLimit, toolRead } from './tool-read.ts'

/** Most traces of a search, whose spans are all in the response. */
const JAEGER_TRACES_MAX = 50
const TRACES_DEFAULT = 20

const micros = z
  .string()
  .regex(/^\d{1,16}$/, 'must be Unix microseconds')
  .transform(text => BigInt(text) * 1_000n)
  .optional()
const duration = z.string().max(64).optional().meta({ pattern: GO_DURATION })

/** Query of a search. */
export const jaegerSearchQuerySchema = z.object({
  service: z.string().min(1).max(1024).meta({
    description: 'Only traces with a span of this service.',
    example: EXAMPLE.serviceName,
  }),
  operation: z.string().max(1024).optional().meta({
    description: 'Only traces with a span of this name.',
    example: 'GET /cart',
  }),
  tags: z.string().max(8_192).optional().meta({
    description: 'Only traces with a span that has these tags, a JSON object: one attribute, and `error`.',
    example: '{"http.route":"/cart"}',
  }),
  start: micros.meta({ description: 'Only of traces since this time, in Unix µs.', example: '1767225600000000' }),
  end: micros.meta({ description: 'Only of traces before this time, in Unix µs.', example: '4070908800000000' }),
  minDuration: duration.meta({ description: 'Only traces with a span that took at least this time.', example: '1ms' }),
  // Refused unless empty, and so not in the document.
  maxDuration: duration,
  limit: toolLimit(JAEGER_TRACES_MAX, TRACES_DEFAULT),
})
/** Query of a search. */
export type JaegerSearchQuery = z.infer<typeof jaegerSearchQuerySchema>

/** Query of the operations of a service. */
export const jaegerOperationsQuerySchema = z.object({
  service: z.string().max(1024).meta({
    description: 'The service.',
    example: EXAMPLE.serviceName,
  }),
})

const millis = (most: number) =>
  z
    .string()
    .regex(/^\d{1,13}$/, 'must be milliseconds')
    .transform(Number)
    .refine(ms => ms <= most, `must be at most ${most}`)
    .optional()

/** Longest time of dependencies, in ms. */
const LOOKBACK_MS_MAX = SERVICES_RANGE_DAYS_MAX * DAY_MS

/** Query of the dependencies. */
export const jaegerDependenciesQuerySchema = z.object({
  endTs: millis(Date.UTC(2100, 0, 1)).meta({
    description: 'Only calls before this time, in Unix ms. Now unless given.',
    example: '1790000600000',
  }),
  lookback: millis(LOOKBACK_MS_MAX).meta({
    description: 'Only calls of this time before, in ms. A day unless given.',
    example: '86400000',
  }),
})

const tag = z.strictObject({
  key: z.string(),
  type: z.enum(['string', 'bool', 'int64', 'float64', 'binary']),
  value: z.union([z.string(), z.number(), z.boolean()]),
})
const tags = z.array(tag).meta({ id: 'JaegerTags' })
const warnings = z.array(z.string()).nullable()

/** A trace as Jaeger returns it. */
const jaegerTraceSchema = z
  .strictObject({
    traceID: z.string(),
    spans: z.array(
      z.strictObject({
        traceID: z.string(),
        spanID: z.string(),
        flags: z.number(),
        operationName: z.string(),
        references: z.array(
          z.strictObject({ refType: z.enum(['CHILD_OF', 'FOLLOWS_FROM']), traceID: z.string(), spanID: z.string() }),
        ),
        startTime: z.number().meta({ description: 'Unix µs.' }),
        duration: z.number().meta({ description: 'In µs.' }),
        tags,
        logs: z.array(z.strictObject({ timestamp: z.number(), fields: tags })),
        processID: z.string(),
        warnings,
      }),
    ),
    processes: z.record(z.string(), z.strictObject({ serviceName: z.string(), tags })),
    warnings,
  })
  .meta({ id: 'JaegerTrace', description: 'A trace as Jaeger returns it.' })
/** A trace as Jaeger returns it. */
export type JaegerTrace = z.infer<typeof jaegerTraceSchema>

/** A body of Jaeger. */
function answer<S extends z.ZodType>(data: S) {
  const whole = z.number().int()
  return z.strictObject({ data: z.array(data), total: whole, limit: whole, offset: whole, errors: z.null() })
}

/** Response with traces. */
export const jaegerTracesSchema = answer(jaegerTraceSchema)
/** Response with names. */
const jaegerNamesSchema = answer(z.string())
/** Response with operations. */
const jaegerOperationsSchema = answer(z.strictObject({ name: z.string(), spanKind: z.string() }))

const jaegerDependenciesSchema = answer(
  z.strictObject({ parent: z.string(), child: z.string(), callCount: z.number().int().min(1) }),
)

interface Read extends NamedRead {
  readonly schema: z.ZodType
  readonly data: readonly unknown[]
}

function get({ schema, data, ...named }: Read): PermittedOperation {
  const example = { data, total: data.length, limit: 0, offset: 0, errors: null }
  const contents = { 'application/json': { schema, example } }
  return toolRead(named, { tool: 'Jaeger', tag: 'traces', problems: callerProblems, contents })
}

const startTime = EXAMPLE.recordedAtMs * 1_000
const { traceId, spanId, serviceName } = EXAMPLE
const trace: JaegerTrace = {
  traceID: traceId,
  spans: [
    {
      ...{ traceID: traceId, spanID: spanId, flags: 1, operationName: 'GET /cart', references: [], startTime },
      ...{ duration: 42_000, tags: [{ key: 'span.kind', type: 'string', value: 'server' }], logs: [] },
      ...{ processID: 'p1', warnings: null },
    },
  ],
  processes: { p1: { serviceName, tags: [] } },
  warnings: null,
}

/** Reads a trace (docs/api/other-tools.md#jaeger). */
export const jaegerTrace = get({
  operationId: 'readJaegerTrace',
  path: '/jaeger/api/traces/:traceId',
  summary: 'Read a trace as Jaeger returns it',
  parameters: {
    path: z.object({
      traceId: z.string().meta({ description: 'Hex. Zeros at its start may be left out.', example: EXAMPLE.traceId }),
    }),
  },
  schema: jaegerTracesSchema,
  data: [trace],
})

/** Searches traces. */
export const jaegerSearch = get({
  operationId: 'searchJaeger',
  path: '/jaeger/api/traces',
  summary: 'Search the traces of a service, newest first, with their spans',
  parameters: { query: jaegerSearchQuerySchema.omit({ maxDuration: true }) },
  schema: jaegerTracesSchema,
  data: [],
})

/** Lists services. */
export const jaegerServices = get({
  operationId: 'listJaegerServices',
  path: '/jaeger/api/services',
  summary: 'List services with traces',
  schema: jaegerNamesSchema,
  data: [serviceName],
})

/** Lists names of the spans of a service. */
export const jaegerServiceOperations = get({
  operationId: 'listJaegerServiceOperations',
  path: '/jaeger/api/services/:service/operations',
  summary: 'List the names of recent spans of a service',
  parameters: {
    path: z.object({
      service: z.string().meta({ description: 'The service, percent-encoded.', example: serviceName }),
    }),
  },
  schema: jaegerNamesSchema,
  data: [],
})

/** The same in the newer form of Jaeger. */
export const jaegerOperations = get({
  operationId: 'listJaegerOperations',
  path: '/jaeger/api/operations',
  summary: 'List the names of recent spans of a service, in the newer form',
  parameters: { query: jaegerOperationsQuerySchema },
  schema: jaegerOperationsSchema,
  data: [],
})

/** Lists which service calls which. */
export const jaegerDependencies = get({
  operationId: 'listJaegerDependencies',
  path: '/jaeger/api/dependencies',
  summary: 'List which service calls which',
  parameters: { query: jaegerDependenciesQuerySchema },
  schema: jaegerDependenciesSchema,
  data: [],
})

/** Every operation of the interface of Jaeger. */
export const JAEGER_OPERATIONS = [
  ...[jaegerTrace, jaegerSearch, jaegerServices, jaegerServiceOperations, jaegerOperations],
  jaegerDependencies,
]
