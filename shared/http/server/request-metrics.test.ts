import { expect, it } from 'vitest'
import { createMetrics } from '../../runtime/metrics.ts'
import type { Route } from '../route.ts'
import { createRequestObserver } from './request-metrics.ts'

const route = (path: string): Route => ({ method: 'POST', path, bodyLimitBytes: 0, accept: () => ({ status: 200 }) })

it('counts responses by method, path and status, with routes of one path together, whenever they are read', async () => {
  const metrics = createMetrics('ingest')
  const observe = createRequestObserver(metrics)
  const read = async (name: string) => {
    const text = await metrics.registry.getSingleMetricAsString(name)
    return text.split('\n').filter(line => !line.startsWith('#'))
  }
  const [drain, options, other] = [route('/drain'), route('/drain'), route('/other')]
  for (const [of, status] of [
    [drain, 200],
    [drain, 200],
    [options, 204],
    [options, 200],
    [other, 599],
  ] as const) {
    observe(of, status, 500)
  }
  const series = (path: string, status: number, value: number) =>
    `penstock_requests_total{method="POST",route="${path}",status="${status}",process="ingest"} ${value}`
  const expected = [series('/drain', 200, 3), series('/drain', 204, 1), series('/other', 599, 1)]
  expect(await read('penstock_requests_total')).toEqual(expected)
  expect(await read('penstock_requests_total')).toEqual(expected)
  const seconds = await read('penstock_request_seconds')
  const of = (suffix: string, le = '') =>
    `penstock_request_seconds_${suffix}{${le && `le="${le}",`}method="POST",route="/drain",process="ingest"}`
  for (const line of [
    `${of('bucket', '0.25')} 0`,
    `${of('bucket', '0.5')} 4`,
    `${of('bucket', '+Inf')} 4`,
    `${of('sum')} 2`,
    `${of('count')} 4`,
  ]) {
    expect(seconds).toContain(line)
  }
})
