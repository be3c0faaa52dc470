import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { tracesProblems } from '../problem-sets.ts'
import { buildInfoSchema, type NamedRead, toolRead } from '../tool-read.ts'
import {
  tempoSearchQuerySchema,
  tempoSearchSchema,
  tempoTagsQuerySchema,
  tempoTagsSchema,
  tempoTagsV2Schema,
  tempoTraceSchema,
  tempoTraceV2Schema,
  tempoValuesSchema,
  tempoValuesV2Schema,
} from './schemas.ts'

type Contents = PermittedOperation['success']['contents']

function get({ contents, ...named }: NamedRead & { readonly contents: Contents }): PermittedOperation {
  return toolRead(named, { tool: 'Tempo', tag: 'traces', problems: tracesProblems, contents })
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
  parameters: { query: tempoSearchQuerySchema },
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
