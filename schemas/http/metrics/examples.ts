import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import type { MetricKind, MetricSeries, MetricsPage } from './schemas.ts'

const kind: MetricKind = { type: 'histogram', unit: 's', temporality: 'delta' }

/** Responses to the examples of the operations, by operation. */
export const ANSWERS: { readonly listMetrics: MetricsPage; readonly readMetricSeries: MetricSeries } = {
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
