import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE } from './example-values.ts'
import { isOrdered, orderedRange } from './filters.ts'
import type { PermittedOperation } from './operation.ts'
import { callerProblems } from './problem-sets.ts'
import { durationsSchema, EXAMPLE_RANGE, mapNodeSchema, ofSpans, rangeOfResponse } from './services.ts'

/** Most edges that the response shows. */
export const EDGES_MAX = 1_000
/** Kinds of calls. */
export const CALL_KINDS = ['request', 'message', 'queue', 'database', 'other'] as const

/** Query of GET /v3/service-map. */
export const readServiceMapQuerySchema = z
  .object({
    ...ofSpans,
    service: z.string().max(1_024).optional().meta({
      description: 'Only calls from and to this service.',
      example: EXAMPLE.serviceName,
    }),
  })
  .refine(isOrdered, orderedRange)

const edgeSchema = z
  .strictObject({
    caller: z
      .string()
      .nullable()
      .meta({ description: 'The calling service. Null if the span of the caller is not stored.' }),
    callee: z.string().nullable().meta({ description: 'The called service. Null if it has sent no span.' }),
    kind: z.enum(CALL_KINDS),
    peer: z.strictObject({ system: z.string(), name: z.string() }).nullable().meta({
      description:
        'The thing that was called, by the attributes of the spans: a database, a queue, a host. Null if they name none.',
    }),
    calls: z.number().int().min(1),
    errors: z.number().int().min(0).meta({ description: 'Calls of which either side has the status `ERROR`.' }),
    durationMs: durationsSchema,
    callerDurationMs: durationsSchema,
    slowest: z.strictObject({ traceId: z.string(), durationMs: z.number().min(0) }),
  })
  .meta({
    id: 'ServiceEdge',
    description:
      'Calls from one service to another. `durationMs` is that of the spans of the callee, `callerDurationMs` that of the caller.',
  })
/** Calls from one service to another. */
export type ServiceEdge = z.infer<typeof edgeSchema>

/** Response of GET /v3/service-map. */
export const serviceMapSchema = z
  .strictObject({
    ...rangeOfResponse,
    services: z.array(mapNodeSchema).meta({ description: 'Services with spans in the range, those with most first.' }),
    edges: z.array(edgeSchema).meta({ description: `At most ${EDGES_MAX}, those first with most calls.` }),
    isCut: z.boolean().meta({ description: 'Whether there are more edges.' }),
  })
  .meta({ id: 'ServiceMap' })
/** Response of GET /v3/service-map. */
export type ServiceMap = z.infer<typeof serviceMapSchema>

const durationMs = { average: 20.5, p50: 17.2, p95: 61.9, p99: 120.4 }

/** Reads which service calls which (docs/api/services.md#map). */
export const readServiceMap: PermittedOperation = {
  operationId: 'readServiceMap',
  method: 'GET',
  path: '/v3/service-map',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read which service calls which, how often, and how long it takes',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: readServiceMapQuerySchema },
  success: {
    status: 200,
    description: 'Services and the calls between them.',
    contents: {
      'application/json': {
        schema: serviceMapSchema,
        example: {
          ...{ ...EXAMPLE_RANGE, stepSeconds: 60 },
          services: [{ name: EXAMPLE.serviceName, counts: 'entries', spans: 1_204, errors: 12, durationMs }],
          edges: [
            {
              ...{
                caller: 'storefront',
                callee: EXAMPLE.serviceName,
                kind: 'request',
                peer: null,
                calls: 1_204,
                errors: 12,
              },
              ...{ durationMs, callerDurationMs: durationMs },
              slowest: { traceId: EXAMPLE.traceId, durationMs: 131.2 },
            },
          ],
          isCut: false,
        },
      },
    },
  },
  problems: callerProblems,
}
