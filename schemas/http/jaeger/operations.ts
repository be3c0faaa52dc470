import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { tracesProblems } from '../problem-sets.ts'
import { type NamedRead, toolRead } from '../tool-read.ts'
import {
  type JaegerTrace,
  jaegerNamesSchema,
  jaegerOperationsQuerySchema,
  jaegerOperationsSchema,
  jaegerSearchQuerySchema,
  jaegerTracesSchema,
} from './schemas.ts'

interface Read extends NamedRead {
  readonly schema: z.ZodType
  readonly data: readonly unknown[]
}

function get({ schema, data, ...named }: Read): PermittedOperation {
  const example = { data, total: data.length, limit: 0, offset: 0, errors: null }
  const contents = { 'application/json': { schema, example } }
  return toolRead(named, { tool: 'Jaeger', tag: 'traces', problems: tracesProblems, contents })
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
  parameters: { query: jaegerSearchQuerySchema },
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

/** Every operation of the interface of Jaeger. */
export const JAEGER_OPERATIONS = [
  ...[jaegerTrace, jaegerSearch, jaegerServices, jaegerServiceOperations, jaegerOperations],
]
