import { z } from 'zod'
import { EXAMPLE } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { prometheusProblems } from '../problem-sets.ts'
import {
  buildInfoAnswerSchema,
  exemplarsParameters,
  exemplarsSchema,
  instantQueryParameters,
  labelListSchema,
  labelsParameters,
  metadataParameters,
  metadataSchema,
  prometheusProblemSchema,
  queryResultSchema,
  rangeQueryParameters,
  seriesListSchema,
  seriesParameters,
} from './prometheus-schemas.ts'
import { type NamedRead, toolRead } from './tool-read.ts'

const atSeconds = EXAMPLE.recordedAtMs / 1_000
const metric = {
  __name__: `${EXAMPLE.metricName}_count`,
  'http.request.method': 'GET',
  'http.route': '/cart',
  'service.name': EXAMPLE.serviceName,
  'surface.id': EXAMPLE.surfaceId,
}

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  instant: { status: 'success', data: { resultType: 'vector', result: [{ metric, value: [atSeconds, '1'] }] } },
  range: {
    status: 'success',
    data: { resultType: 'matrix', result: [{ metric, values: [[atSeconds, '1']] }] },
  },
  labels: { status: 'success', data: ['__name__', 'http.request.method', 'http.route', 'service.name', 'surface.id'] },
  values: { status: 'success', data: ['/cart'] },
  series: { status: 'success', data: [metric] },
  exemplars: { status: 'success', data: [] },
  metadata: {
    status: 'success',
    data: { [EXAMPLE.metricName]: [{ type: 'histogram', help: 'Duration of HTTP server requests.', unit: 's' }] },
  },
  buildInfo: {
    status: 'success',
    data: { version: '3.0.0', revision: '', branch: '', buildUser: '', buildDate: '', goVersion: '' },
  },
} as const

const text = new URLSearchParams({ query: `{"${EXAMPLE.metricName}_count"}` })

/** Bodies of the operations with a form. */
const FORMS = {
  instant: `${text}&time=${atSeconds}`,
  range: `${text}&start=${atSeconds}&end=${atSeconds + 60}&step=15s`,
  exemplars: `${text}&start=${atSeconds}&end=${atSeconds + 60}`,
  list: `${new URLSearchParams({ 'match[]': `{"${EXAMPLE.metricName}_count"}` })}&start=${atSeconds}&end=${atSeconds + 600}`,
} as const

/** Media type of the bodies that clients of Prometheus send. */
export const FORM = 'application/x-www-form-urlencoded'

interface Read extends NamedRead {
  readonly schema: z.ZodType
  readonly example: unknown
}

/** An operation that is read by GET. */
function get({ schema, example, ...named }: Read): PermittedOperation {
  return toolRead(named, {
    ...{ tool: 'Prometheus', tag: 'metrics', problems: prometheusProblems },
    problemForm: { schema: prometheusProblemSchema },
    contents: { 'application/json': { schema, example } },
  })
}

/** The same operation by POST, with its parameters in a form. */
function byForm(operation: PermittedOperation, example: string): PermittedOperation {
  const { parameters: _, operationId, summary, ...rest } = operation
  return {
    ...rest,
    operationId: `${operationId}ByForm`,
    summary: `${summary}, with the parameters in a form`,
    method: 'POST',
    body: { limitBytes: SMALL_BODY_BYTES, contents: { [FORM]: { example } } },
    problems: prometheusProblems,
  }
}

/** Evaluates an expression at one time (docs/api/other-tools.md#prometheus). */
export const queryInstant = get({
  operationId: 'queryPrometheus',
  path: '/prometheus/api/v1/query',
  summary: 'Evaluate a query of PromQL at one time',
  parameters: { query: instantQueryParameters },
  schema: queryResultSchema,
  example: ANSWERS.instant,
})
/** The same by POST. */
export const queryInstantByForm = byForm(queryInstant, FORMS.instant)

/** Evaluates an expression at several times. */
export const queryRange = get({
  operationId: 'queryPrometheusRange',
  path: '/prometheus/api/v1/query_range',
  summary: 'Evaluate a query of PromQL over a range of time',
  parameters: { query: rangeQueryParameters },
  schema: queryResultSchema,
  example: ANSWERS.range,
})
/** The same by POST. */
export const queryRangeByForm = byForm(queryRange, FORMS.range)

/** Lists names of labels. */
export const listLabels = get({
  operationId: 'listPrometheusLabels',
  path: '/prometheus/api/v1/labels',
  summary: 'List the names of the labels of series',
  parameters: { query: labelsParameters },
  schema: labelListSchema,
  example: ANSWERS.labels,
})
/** The same by POST. */
export const listLabelsByForm = byForm(listLabels, FORMS.list)

/** Lists values of a label. */
export const listLabelValues = get({
  operationId: 'listPrometheusLabelValues',
  path: '/prometheus/api/v1/label/:label/values',
  summary: 'List the values of a label',
  parameters: {
    path: z.object({ label: z.string().meta({ description: 'The label, percent-encoded.', example: 'http.route' }) }),
    query: labelsParameters,
  },
  schema: labelListSchema,
  example: ANSWERS.values,
})

/** Lists series. */
export const listSeries = get({
  operationId: 'listPrometheusSeries',
  path: '/prometheus/api/v1/series',
  summary: 'List series with their labels',
  parameters: { query: seriesParameters },
  schema: seriesListSchema,
  example: ANSWERS.series,
})
/** The same by POST. */
export const listSeriesByForm = byForm(listSeries, FORMS.list)

/** Lists exemplars. */
export const listExemplars = get({
  operationId: 'listPrometheusExemplars',
  path: '/prometheus/api/v1/query_exemplars',
  summary: 'List the longest span of each minute of the span metrics that a query reads',
  parameters: { query: exemplarsParameters },
  schema: exemplarsSchema,
  example: ANSWERS.exemplars,
})
/** The same by POST. */
export const listExemplarsByForm = byForm(listExemplars, FORMS.exemplars)

/** Lists types, descriptions and units. */
export const listMetadata = get({
  operationId: 'listPrometheusMetadata',
  path: '/prometheus/api/v1/metadata',
  summary: 'List the types, descriptions and units of metrics',
  parameters: { query: metadataParameters },
  schema: metadataSchema,
  example: ANSWERS.metadata,
})

/** Names the version of Prometheus whose interface this is. */
export const readBuildInfo = get({
  operationId: 'readPrometheusBuildInfo',
  path: '/prometheus/api/v1/status/buildinfo',
  summary: 'Read which version of the interface of Prometheus this is',
  schema: buildInfoAnswerSchema,
  example: ANSWERS.buildInfo,
})

/** Every operation of the interface of Prometheus. */
export const PROMETHEUS_OPERATIONS = [
  ...[queryInstant, queryInstantByForm, queryRange, queryRangeByForm],
  ...[listExemplars, listExemplarsByForm],
  ...[listLabels, listLabelsByForm, listLabelValues, listSeries, listSeriesByForm, listMetadata, readBuildInfo],
]
