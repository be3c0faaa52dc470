import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
import { DEFAULT, wholeNumber } from '../fields.ts'
import type { ProblemCode } from '../problems.ts'
import { buildInfoSchema, LIMIT_READ_MAX } from './tool-read.ts'

/** Most times at which one query is evaluated. Prometheus has the same limit. */
export const RESOLUTION_MAX = 11_000
/** Most values of one response. */
export const RESPONSE_VALUES_MAX = 500_000
/** Most entries of a list of names, values or series. */
export const LABELS_MAX = 10_000

/** Longest text of a time. */
const TIME_CHARACTERS = 64
/** Times beyond this, in Unix seconds, have no nanoseconds in 64 bits. */
const SECONDS_MAX = Date.UTC(2200, 0, 1) / 1_000

/** Times in the document: Unix seconds, and RFC 3339 since 1970. */
const SECONDS = String.raw`[0-6]?\d{1,9}(\.\d*)?`
const CLOCK = String.raw`([01]\d|2[0-3]):[0-5]\d`
const RFC_3339 = String.raw`(19[7-9]|2[01]\d)\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T${CLOCK}:[0-5]\d(\.\d+)?(Z|[+-]${CLOCK})`

/** A time as Prometheus accepts it: RFC 3339 or Unix seconds. Becomes Unix ms. */
const timeSchema = z
  .string()
  .max(TIME_CHARACTERS)
  .transform((text, context): number => {
    const seconds = /^-?\d+(\.\d*)?(e\+?\d{1,2})?$/i.test(text) ? Number(text) : Date.parse(text) / 1_000
    if (/[\dT]/.test(text) && seconds >= 0 && seconds <= SECONDS_MAX) return Math.round(seconds * 1_000)
    context.addIssue({ code: 'custom', message: 'must be a time in RFC 3339 or in Unix seconds' })
    return z.NEVER
  })
  .meta({ pattern: `^(${SECONDS}|${RFC_3339})$` })

/** The same where it may be left out. Grafana sends parameters without a value. */
const optionalTime = timeSchema.optional().meta({ pattern: `^(${SECONDS}|${RFC_3339})?$` })

const expression = z
  .string()
  .min(1)
  .meta({
    description: 'The query: the subset of PromQL that docs/grafana.md lists.',
    example: `{"${EXAMPLE.metricName}_count"}`,
  })

/** Parameters of an instant query. */
export const instantQueryParameters = z.object({
  query: expression,
  time: optionalTime.meta({
    description: 'When it is evaluated. Now unless given.',
    example: String(EXAMPLE.recordedAtMs / 1_000),
  }),
})

/** Parameters of a range query. */
export const rangeQueryParameters = z.object({
  query: expression,
  start: timeSchema.meta({ description: 'The first time.', example: String(EXAMPLE.recordedAtMs / 1_000) }),
  end: timeSchema.meta({ description: 'The last time at most.', example: String(EXAMPLE.recordedAtMs / 1_000 + 60) }),
  step: z.string().max(TIME_CHARACTERS).meta({
    description: 'Time between two values, in seconds or as a duration.',
    pattern: String.raw`^(\d+(\.\d+)?|(\d+(ms|[smhdwy]))+)$`,
    example: '15s',
  }),
})

/** Range of time of lists. */
const range = {
  start: optionalTime.meta({
    description: 'Only of points since this time. An hour before `end` unless given.',
    example: '1790000000',
  }),
  end: optionalTime.meta({ description: 'Only of points until this time. Now unless given.', example: '1790000600' }),
}
const limit = wholeNumber(0, LIMIT_READ_MAX)
  .optional()
  .meta({ description: 'Most entries. 0 is the default.', [DEFAULT]: LABELS_MAX, example: 100 })
const match = z
  .array(z.string())
  .max(10, 'must have at most 10 selectors')
  .meta({ description: 'Selectors of series.', example: [`{"${EXAMPLE.metricName}_count"}`] })

/** Parameters of lists of labels. */
export const labelsParameters = z.object({ ...range, limit, 'match[]': match.optional() })
/** Parameters of a list of series. */
export const seriesParameters = z.object({ ...range, limit, 'match[]': match.min(1) })
/** Parameters of a list of exemplars. */
export const exemplarsParameters = z.object({ query: expression, start: range.start, end: range.end })
/** Parameters of the metadata of metrics. */
export const metadataParameters = z.object({
  ...range,
  metric: z.string().optional().meta({ description: 'Only of this metric.', example: EXAMPLE.metricName }),
  limit,
})

const warnings = z
  .array(z.string())
  .meta({ id: 'PrometheusWarnings', description: 'Such as that a list is truncated.' })

/** A body of Prometheus. */
function success<S extends z.ZodType>(data: S) {
  return z.strictObject({
    status: z.literal('success'),
    data,
    warnings: warnings.optional(),
  })
}

const sample = z
  .array(z.union([z.number(), z.string()]))
  .length(2)
  .meta({ description: 'Unix seconds, and the value as text.' })
const labels = z.record(z.string(), z.string())

/** Response to a query. */
export const queryResultSchema = success(
  z.strictObject({
    resultType: z.enum(['matrix', 'vector', 'scalar', 'string']),
    result: z.array(
      z.union([
        z.number(),
        z.string(),
        z.strictObject({ metric: labels, value: sample.optional(), values: z.array(sample).optional() }),
      ]),
    ),
  }),
).meta({ id: 'QueryResult' })
/** Response with names or values of labels. */
export const labelListSchema = success(z.array(z.string()))
/** Response with series. */
export const seriesListSchema = success(z.array(labels))
/** Response with exemplars. */
export const exemplarsSchema = success(
  z.array(
    z.strictObject({
      seriesLabels: labels,
      exemplars: z.array(
        z.strictObject({ labels: z.strictObject({ trace_id: z.string() }), value: z.string(), timestamp: z.number() }),
      ),
    }),
  ),
).meta({ id: 'Exemplars' })
/** Response with the metadata of metrics. */
export const metadataSchema = success(
  z.record(z.string(), z.array(z.strictObject({ type: z.string(), help: z.string(), unit: z.string() }))),
)
/** Response with the version of Prometheus whose interface this is. */
export const buildInfoAnswerSchema = success(buildInfoSchema)

/** Body of a refusal, as Prometheus has it, with the code of the problem. */
export const prometheusProblemSchema = z
  .strictObject({
    status: z.literal('error'),
    errorType: z.string().meta({ description: 'Such as `bad_data` or `execution`.' }),
    error: z.string(),
    code: z.string().meta({ description: 'The kind of problem, as in other responses.' }),
  })
  .meta({ id: 'PrometheusProblem', description: 'A refusal as clients of Prometheus read it.' })
/** Body of a refusal. */
type PrometheusProblem = z.infer<typeof prometheusProblemSchema>

/** Error types of Prometheus by the code of a problem. */
const ERROR_TYPES: Partial<Record<ProblemCode, string>> = {
  AUTH_MISSING: 'unauthorized',
  AUTH_ORG_REQUIRED: 'forbidden',
  PERMISSION_DENIED: 'forbidden',
  REQUEST_INVALID: 'bad_data',
  NOT_FOUND: 'not_found',
  METHOD_NOT_ALLOWED: 'bad_data',
  INTERNAL: 'internal',
}

/** Status of a query that is valid and cannot be executed. */
export const UNPROCESSABLE = 422

/** Returns the body of a problem as clients of Prometheus read it. */
export function prometheusProblem(
  { code, message }: { readonly code: ProblemCode; readonly message: string },
  status?: number,
): PrometheusProblem {
  const errorType = status === UNPROCESSABLE ? 'execution' : (ERROR_TYPES[code] ?? 'unavailable')
  return { status: 'error', errorType, error: message, code }
}
