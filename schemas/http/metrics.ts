import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { wholeNumber } from './fields.ts'
import { inJson, instantQuerySchema, isOrdered, orderedRange } from './filters.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems } from './problem-sets.ts'

/** Most days between `from` and `to`. */
export const METRICS_RANGE_DAYS_MAX = 31
/** Most steps and series of one response. */
export const STEPS_MAX = 1_000
/** Most series of one response. */
export const SERIES_MAX = 100
/** Most label keys that a list shows of a metric. */
export const LABEL_KEYS_MAX = 100
/** Characters after which a unit is cut. OpenTelemetry allows as many. */
export const UNIT_CHARACTERS = 63
/** Characters after which a description is cut. */
export const DESCRIPTION_CHARACTERS = 500

/** Types of metrics by their names in OTLP. */
const METRIC_TYPES = ['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary'] as const
/** Aggregations of points (docs/api/metrics.md#metric-series). */
const AGGREGATIONS = ['average', 'last', 'max', 'min', 'quantile', 'rate', 'sum'] as const
/** Aggregation of points. */
export type Aggregation = (typeof AGGREGATIONS)[number]

/** Most labels in `filter`, and in `groupBy`. */
const LABELS_MAX = 8
const LABELS_CHARACTERS = 8_192

/** Range of the examples, with a point. */
const EXAMPLE_RANGE = { from: '2026-09-21T14:12:00Z', to: '2026-09-21T14:14:00Z' } as const

const ofPoints = {
  surface: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: 'Only points of the surface with this id.', example: EXAMPLE.surfaceId }),
  service: z.string().max(1024).optional().meta({
    description: 'Only points of this `service.name`, as it was sent. If empty, only those without one.',
    example: EXAMPLE.serviceName,
  }),
  from: instantQuerySchema.optional().meta({
    description: 'Only points at or after this time, by the clock of their sender. An hour before `to` unless given.',
    example: EXAMPLE_RANGE.from,
  }),
  to: instantQuerySchema.optional().meta({
    description: `Only points before this time, at most ${METRICS_RANGE_DAYS_MAX} days after \`from\`. Now unless given.`,
    example: EXAMPLE_RANGE.to,
  }),
}

/** Query of GET /v3/metrics. */
export const listMetricsQuerySchema = pageQuerySchema
  .extend({
    ...ofPoints,
    prefix: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .meta({ description: 'Only metrics whose name begins with this text.', example: 'http.' }),
  })
  .refine(isOrdered, orderedRange)

/** Query of GET /v3/metrics/{name}/series. */
export const metricSeriesQuerySchema = z
  .object({
    ...ofPoints,
    type: z.enum(METRIC_TYPES).optional().meta({ description: 'Only points of this type.', example: 'histogram' }),
    unit: z.string().max(1024).optional().meta({
      description: 'Only points in this unit. If empty, only those without one.',
      example: 's',
    }),
    filter: inJson(
      z.record(z.string(), z.string()).refine(labels => Object.keys(labels).length <= LABELS_MAX),
      LABELS_CHARACTERS,
      `must be a JSON object of at most ${LABELS_MAX} labels with their values, such as {"http.route":"/cart"}`,
    )
      .optional()
      .meta({
        description:
          'Only series with these labels, a JSON object. An empty value selects series without the label. Besides the attributes of points, `service.name` and `surface.id` are labels.',
        example: '{"http.request.method":"GET"}',
      }),
    groupBy: inJson(
      z.array(z.string()).max(LABELS_MAX),
      LABELS_CHARACTERS,
      `must be a JSON list of at most ${LABELS_MAX} labels, such as ["http.route"]`,
    )
      .optional()
      .meta({
        description: 'A series for each combination of values of these labels, a JSON list. One series unless given.',
        example: '["http.route"]',
      }),
    step: wholeNumber(1, 86_400)
      .optional()
      .meta({
        description: `Seconds of a step. At most ${STEPS_MAX} steps. Chosen by the range unless given.`,
        example: 60,
      }),
    aggregation: z.enum(AGGREGATIONS).optional().meta({
      description: 'How points are aggregated. The default and the possible ones depend on the type.',
      example: 'quantile',
    }),
    quantile: z
      .string()
      .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .optional()
      .meta({
        type: 'number',
        minimum: 0,
        maximum: 1,
        description: 'Which quantile, with `aggregation=quantile`.',
        example: 0.95,
      }),
  })
  .refine(isOrdered, orderedRange)
  .refine(({ aggregation, quantile }) => (aggregation === 'quantile') === (quantile !== undefined), {
    path: ['quantile'],
    error: 'must be given with aggregation=quantile, and only then',
  })
/** Query of GET /v3/metrics/{name}/series. */
export type MetricSeriesQuery = z.infer<typeof metricSeriesQuerySchema>

/** Kind of the points of a metric. Points of different kinds are never aggregated together. */
const metricKindSchema = z
  .strictObject({
    type: z.enum(METRIC_TYPES),
    unit: z.string().meta({ description: `Empty if none was sent. Cut after ${UNIT_CHARACTERS} characters.` }),
    temporality: z
      .enum(['unspecified', 'delta', 'cumulative'])
      .optional()
      .meta({ description: 'For sums and histograms: whether a point counts since the one before, or since a start.' }),
    isMonotonic: z.boolean().optional().meta({ description: 'For sums: whether they only grow.' }),
  })
  .meta({ id: 'MetricKind', description: 'Kind of the points of a metric.' })
/** Kind of the points of a metric. */
export type MetricKind = z.infer<typeof metricKindSchema>

/** A metric by its name. */
const metricSchema = z
  .strictObject({
    name: z.string(),
    description: z.string().meta({ description: `Cut after ${DESCRIPTION_CHARACTERS} characters.` }),
    kinds: z.array(metricKindSchema).meta({ description: 'At most 10, the one of the newest point first.' }),
    labels: z.array(z.string()).meta({
      description: `Keys of the attributes of its points, at most ${LABEL_KEYS_MAX}. Each metric also has \`service.name\` and \`surface.id\`.`,
    }),
    lastPointAt: z.iso.datetime({ precision: 9 }).meta({ description: 'By the clock of the sender.' }),
  })
  .meta({ id: 'Metric', description: 'A metric with points in the range.' })
/** A metric by its name. */
export type Metric = z.infer<typeof metricSchema>

/** Response of GET /v3/metrics, by name. */
export const metricsPageSchema = z
  .strictObject({ metrics: z.array(metricSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'MetricsPage' })
/** Response of GET /v3/metrics. */
export type MetricsPage = z.infer<typeof metricsPageSchema>

/** Response of GET /v3/metrics/{name}/series. */
export const metricSeriesSchema = z
  .strictObject({
    name: z.string(),
    kind: metricKindSchema,
    otherKinds: z.array(metricKindSchema).meta({
      description: 'Other kinds that the metric has in the range. `type` and `unit` choose one of them.',
    }),
    aggregation: z.enum(AGGREGATIONS),
    quantile: z.number().optional(),
    from: z.iso.datetime().meta({ description: 'Start of the first step.' }),
    to: z.iso.datetime().meta({ description: 'End of the last step.' }),
    stepSeconds: z.number().int().min(1),
    seriesCount: z.number().int().min(0).meta({ description: 'How many series there are.' }),
    truncated: z.boolean().meta({ description: 'Whether `series` is incomplete.' }),
    series: z
      .array(
        z.strictObject({
          labels: z
            .record(z.string(), z.string())
            .meta({ description: 'The labels of `groupBy` that the points have.' }),
          bounds: z.array(z.number()).optional().meta({
            description:
              'With `aggregation=quantile` of a histogram with bounds: those of its buckets. Points with other bounds are another series.',
          }),
          values: z.array(z.number().nullable()).max(STEPS_MAX).meta({
            description: 'A value for each step, the first at `from`. null if nothing is known about the step.',
          }),
        }),
      )
      .max(SERIES_MAX)
      .meta({ description: `The first ${SERIES_MAX} in the order of their labels.` }),
  })
  .meta({ id: 'MetricSeries', description: 'Points of a metric, aggregated by step.' })
/** Response of GET /v3/metrics/{name}/series. */
export type MetricSeries = z.infer<typeof metricSeriesSchema>

const kind: MetricKind = { type: 'histogram', unit: 's', temporality: 'delta' }

/** Responses to the examples of the operations, by operation. */
const ANSWERS: { readonly listMetrics: MetricsPage; readonly readMetricSeries: MetricSeries } = {
  listMetrics: {
    metrics: [
      {
        name: EXAMPLE.metricName,
        description: 'Duration of HTTP server requests.',
        kinds: [kind],
        labels: ['http.request.method', 'http.route'],
        lastPointAt: EXAMPLE_TIMES.startedAt,
      },
    ],
    nextCursor: null,
  },
  readMetricSeries: {
    name: EXAMPLE.metricName,
    kind,
    otherKinds: [],
    aggregation: 'quantile',
    quantile: 0.95,
    from: '2026-09-21T14:12:00.000Z',
    to: '2026-09-21T14:14:00.000Z',
    stepSeconds: 60,
    seriesCount: 1,
    truncated: false,
    series: [{ labels: { 'http.route': '/cart' }, bounds: [0.01, 0.05, 0.1], values: [null, 0.048] }],
  },
}

const metricsRead = {
  method: 'GET',
  service: 'api-analytics',
  tag: 'metrics',
  credentials: READER,
  permission: 'org:telemetry:read',
  problems: callerProblems,
} as const

/** Lists the metrics of a workspace (docs/api/metrics.md#metrics). */
export const listMetrics: PermittedOperation = {
  ...metricsRead,
  operationId: 'listMetrics',
  path: '/v3/metrics',
  summary: 'List metrics by name',
  description: 'Metrics with points in a range of time, with their types, units and labels.',
  parameters: { query: listMetricsQuerySchema },
  success: {
    status: 200,
    description: 'A page of metrics.',
    contents: { 'application/json': { schema: metricsPageSchema, example: ANSWERS.listMetrics } },
  },
}

const metricName = z.string().meta({ description: 'The name, percent-encoded.', example: EXAMPLE.metricName })

/** Reads series of a metric (docs/api/metrics.md#metric-series). */
export const readMetricSeries: PermittedOperation = {
  ...metricsRead,
  operationId: 'readMetricSeries',
  path: '/v3/metrics/:name/series',
  summary: 'Read series of a metric, aggregated by step and label',
  parameters: { path: z.object({ name: metricName }), query: metricSeriesQuerySchema },
  success: {
    status: 200,
    description: 'The series.',
    contents: { 'application/json': { schema: metricSeriesSchema, example: ANSWERS.readMetricSeries } },
  },
}
