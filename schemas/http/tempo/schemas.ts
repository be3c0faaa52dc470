import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'

/** Most traces of a search. */
export const SEARCH_LIMIT_MAX = 100
const SEARCH_LIMIT_DEFAULT = 20
/** Most characters of a query. */
const QUERY_CHARACTERS = 8_192

const seconds = z
  .string()
  .regex(/^(\d{1,10}(\.\d{1,9})?)?$/, 'must be Unix seconds')
  .transform(text => (text === '' ? undefined : BigInt(Math.round(Number(text) * 1_000)) * 1_000_000n))
  .optional()
const duration = z.string().max(64, 'must have at most 64 characters').optional()
const query = z.string().max(QUERY_CHARACTERS, `must have at most ${QUERY_CHARACTERS} characters`).optional()

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
  maxDuration: duration.meta({ description: 'Not supported: leave it empty.', example: '' }),
  limit: z
    .string()
    .regex(/^\d{1,6}$/, 'must be a whole number')
    .transform(text => Math.min(Math.max(Number(text), 1), SEARCH_LIMIT_MAX))
    .default(SEARCH_LIMIT_DEFAULT)
    .meta({ type: 'integer', description: `Most traces, at most ${SEARCH_LIMIT_MAX}.`, example: SEARCH_LIMIT_DEFAULT }),
})

/** Query of lists of tags and their values. */
export const tempoTagsQuerySchema = z.object(range)

/** Response to a search. */
export const tempoSearchSchema = z.strictObject({
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
export const tempoTraceSchema = z.strictObject({ batches: resourceSpans })
/** A trace in the second version of the interface. */
export const tempoTraceV2Schema = z.strictObject({
  trace: z.strictObject({ resourceSpans }),
  status: z.enum(['COMPLETE', 'PARTIAL']),
  message: z.string().optional(),
})
/** Names of tags. */
export const tempoTagsSchema = z.strictObject({ tagNames: z.array(z.string()) })
/** Names of tags by what they belong to. */
export const tempoTagsV2Schema = z.strictObject({
  scopes: z.array(z.strictObject({ name: z.string(), tags: z.array(z.string()) })),
})
/** Values of a tag. */
export const tempoValuesSchema = z.strictObject({ tagValues: z.array(z.string()) })
/** Values of a tag with their types. */
export const tempoValuesV2Schema = z.strictObject({
  tagValues: z.array(z.strictObject({ type: z.string(), value: z.string() })),
})
