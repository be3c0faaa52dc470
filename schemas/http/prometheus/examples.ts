import { EXAMPLE } from '../example-values.ts'

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
export const FORMS = {
  instant: `${text}&time=${atSeconds}`,
  range: `${text}&start=${atSeconds}&end=${atSeconds + 60}&step=15s`,
  list: `${new URLSearchParams({ 'match[]': `{"${EXAMPLE.metricName}_count"}` })}&start=${atSeconds}&end=${atSeconds + 600}`,
} as const
