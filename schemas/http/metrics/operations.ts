import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { metricsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { listMetricsQuerySchema, metricSeriesQuerySchema, metricSeriesSchema, metricsPageSchema } from './schemas.ts'

/** Lists the metrics of a workspace (docs/api/metrics.md#metrics). */
export const listMetrics: PermittedOperation = {
  operationId: 'listMetrics',
  method: 'GET',
  path: '/v3/metrics',
  service: 'api-analytics',
  tag: 'metrics',
  summary: 'List metrics by name',
  description: 'Metrics with points in a range of time, with their types, units and labels.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: listMetricsQuerySchema },
  success: {
    status: 200,
    description: 'A page of metrics.',
    contents: { 'application/json': { schema: metricsPageSchema, example: ANSWERS.listMetrics } },
  },
  problems: metricsProblems,
}

const metricName = z.string().meta({ description: 'The name, percent-encoded.', example: EXAMPLE.metricName })

/** Reads series of a metric (docs/api/metrics.md#metric-series). */
export const readMetricSeries: PermittedOperation = {
  operationId: 'readMetricSeries',
  method: 'GET',
  path: '/v3/metrics/:name/series',
  service: 'api-analytics',
  tag: 'metrics',
  summary: 'Read series of a metric, aggregated by step and label',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: z.object({ name: metricName }), query: metricSeriesQuerySchema },
  success: {
    status: 200,
    description: 'The series.',
    contents: { 'application/json': { schema: metricSeriesSchema, example: ANSWERS.readMetricSeries } },
  },
  problems: metricsProblems,
}
