import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { buildInfoSchema, GO_DURATION, type NamedRead, toolLimit, toolRead } from './tool-read.ts'

/** Most traces of a search. */
const SEARCH_LIMIT_MAX = 100
const SEARCH_LIMIT_DEFAULT = 20
/** Most characters of a query. */
const QUERY_CHARACTERS = 8_192

const seconds = z
  .string()
  .regex(/^(\d{1,10}(\.\d{1,9})?)?$/, 'must be Unix seconds')
  .transform(text => (text === '' ? undefined : BigInt(Math.round(Number(text) * 1_000)) * 1_000_000n))
  .optional()
const duration = z.string().max(64).optional().meta({ pattern: GO_DURATION })
const query = z.string().max(QUERY_CHARACTERS).optional()

const range = {
  start: seconds.meta({ description: 'Only of traces since this time, in Unix seconds.', example: '1767225600' }),
  end: seconds.meta({ description: 'Only of traces before this time, in Unix seconds.', example: '4070908800' }),
}

/** Query of a search. */
export const tempoSearchQuerySchema = z.object({
  ...range,
  q: query.meta({
    description: 'TraceQL: one set of conditions, as docs/grafana.md lists them.',
    example: `{ resource.service.name = "${EXAMPLE.serviceName}" }`,
  }),
  tags: query.meta({ description: 'Conditions in logfmt.', example: 'http.route=/cart' }),
  minDuration: duration.meta({ description: 'Only traces with a span that took at least this time.', example: '1ms' }),
  // Refused unless empty, and so not in the document.
  maxDuration: duration,
  limit: toolLimit(SEARCH_LIMIT_MAX, SEARCH_LIMIT_DEFAULT),
})

/** Query of lists of tags and their values. */
export const tempoTagsQuerySchema = z.object(range)

/** Response to a search. */
const tempoSearchSchema = z.strictObject({
  traces: z.array(
    z.strictObject({
      traceID: z.string(),
      rootServiceName: z.string(),
      rootTraceName: z.string(),
      startTimeUnixNano: z.string(),
      durationMs: z.number().int().min(0),
    }),
  ),
  metrics: z.strictObject({}),
})

const resourceSpans = z.array(z.looseObject({}))
/** A trace in the JSON of protobuf. */
const tempoTraceSchema = z.strictObject({ batches: resourceSpans })
/** A trace in the second version of the interface. */
const tempoTraceV2Schema = z.strictObject({
  trace: z.strictObject({ resourceSpans }),
  status: z.enum(['COMPLETE', 'PARTIAL']),
  message: z.string().optional(),
})
/** Names of tags. */
const tempoTagsSchema = z.strictObject({ tagNames: z.array(z.string()) })
/** Names of tags by what they belong to. */
const tempoTagsV2Schema = z.strictObject({
  scopes: z.array(z.strictObject({ name: z.string(), tags: z.array(z.string()) })),
})
/** Values of a tag. */
const tempoValuesSchema = z.strictObject({ tagValues: z.array(z.string()) })
/** Values of a tag with their types. */
const tempoValuesV2Schema = z.strictObject({
  tagValues: z.array(z.strictObject({ type: z.string(), value: z.string() })),
})

type Contents = PermittedOperation['success']['contents']

function get({ contents, ...named }: NamedRead & { readonly contents: Contents }): PermittedOperation {
  return toolRead(named, { tool: 'Tempo', tag: 'traces', problems: callerProblems, contents })
}

const json = (schema: z.ZodType, example: unknown): Contents => ({ 'application/json': { schema, example } })
const PROTOBUF: Contents = { 'application/protobuf': { example: '' } }

const ofTrace = z.object({
  traceId: z.string().meta({ description: 'Hex. Zeros at its start may be left out.', example: EXAMPLE.traceId }),
})
const ofTag = z.object({ tag: z.string().meta({ description: 'Such as `span.http.route`.', example: 'service.name' }) })

/** Reads a trace (docs/api/other-tools.md#tempo). */
export const tempoTrace = get({
  operationId: 'readTempoTrace',
  path: '/tempo/api/traces/:traceId',
  summary: 'Read a trace as Tempo returns it, in OTLP',
  parameters: { path: ofTrace },
  contents: { ...json(tempoTraceSchema, { batches: [{}] }), ...PROTOBUF },
})

/** The same in the second version of the interface. */
export const tempoTraceV2 = get({
  operationId: 'readTempoTraceV2',
  path: '/tempo/api/v2/traces/:traceId',
  summary: 'Read a trace as Tempo returns it, and whether it is cut',
  parameters: { path: ofTrace },
  contents: { ...json(tempoTraceV2Schema, { trace: { resourceSpans: [{}] }, status: 'COMPLETE' }), ...PROTOBUF },
})

/** Searches traces. */
export const tempoSearch = get({
  operationId: 'searchTempo',
  path: '/tempo/api/search',
  summary: 'Search traces by tags or TraceQL, newest first',
  parameters: { query: tempoSearchQuerySchema.omit({ maxDuration: true }) },
  contents: json(tempoSearchSchema, {
    traces: [
      {
        traceID: EXAMPLE.traceId,
        rootServiceName: EXAMPLE.serviceName,
        rootTraceName: 'GET /cart',
        startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
        durationMs: 42,
      },
    ],
    metrics: {},
  }),
})

/** Lists tags. */
export const tempoTags = get({
  operationId: 'listTempoTags',
  path: '/tempo/api/search/tags',
  summary: 'List tags that traces can be searched by',
  parameters: { query: tempoTagsQuerySchema },
  contents: json(tempoTagsSchema, { tagNames: ['service.name'] }),
})

/** The same in the second version of the interface. */
export const tempoTagsV2 = get({
  operationId: 'listTempoTagsV2',
  path: '/tempo/api/v2/search/tags',
  summary: 'List tags that traces can be searched by, by what they belong to',
  parameters: { query: tempoTagsQuerySchema },
  contents: json(tempoTagsV2Schema, { scopes: [{ name: 'resource', tags: ['service.name'] }] }),
})

/** Lists values of a tag. */
export const tempoValues = get({
  operationId: 'listTempoTagValues',
  path: '/tempo/api/search/tag/:tag/values',
  summary: 'List values of a tag',
  parameters: { path: ofTag, query: tempoTagsQuerySchema },
  contents: json(tempoValuesSchema, { tagValues: [EXAMPLE.serviceName] }),
})

/** The same in the second version of the interface. */
export const tempoValuesV2 = get({
  operationId: 'listTempoTagValuesV2',
  path: '/tempo/api/v2/search/tag/:tag/values',
  summary: 'List values of a tag with their types',
  parameters: { path: ofTag, query: tempoTagsQuerySchema },
  contents: json(tempoValuesV2Schema, { tagValues: [{ type: 'string', value: EXAMPLE.serviceName }] }),
})

/** Answers a data source that looks whether it is configured. */
export const tempoEcho = get({
  operationId: 'echoTempo',
  path: '/tempo/api/echo',
  summary: 'Check that a data source reaches the service with its credential',
  contents: { 'text/plain': { example: 'echo' } },
})

/** Names the version of Tempo whose interface this is. */
export const TEMPO_BUILD_INFO = {
  version: '2.6.0',
  revision: '',
  branch: '',
  buildUser: '',
  buildDate: '',
  goVersion: '',
} as const
/** The same as an operation. */
export const tempoBuildInfo = get({
  operationId: 'readTempoBuildInfo',
  path: '/tempo/api/status/buildinfo',
  summary: 'Read which version of the interface of Tempo this is',
  contents: json(buildInfoSchema, TEMPO_BUILD_INFO),
})

/** Every operation of the interface of Tempo. */
export const TEMPO_OPERATIONS = [
  ...[tempoTrace, tempoTraceV2, tempoSearch, tempoTags, tempoTagsV2, tempoValues, tempoValuesV2],
  ...[tempoEcho, tempoBuildInfo],
]
