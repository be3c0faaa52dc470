import { beforeAll, describe, expect, it } from 'vitest'
import { BASE_MS, deltas, gauge, histogram, otherToken, store, sum } from '../fixture.ts'
import { askPrometheus } from './fixture.ts'

const seconds = BASE_MS / 1_000
const range = { start: String(seconds), end: String(seconds + 300) }
const own = { 'service.name': 'shop', 'surface.id': 'srf_1' }
const point = { at: 10, since: 0, value: 1 }

beforeAll(async () => {
  await store([
    gauge('lists.load', [{ ...point, labels: { 'host.name': 'one' } }], 's'),
    sum('lists.requests', [{ ...point, labels: { 'http.route': '/a' } }]),
    deltas('lists.deltas', [{ ...point, value: 6, labels: { le: 'mine' } }]),
    histogram('lists.latency', [{ at: 10, counts: [1, 2], bounds: [0.5] }]),
    histogram('ends.latency', [{ at: 10, counts: [1, 2, 3, 4], bounds: [Number.NEGATIVE_INFINITY, 0.5, Infinity] }]),
    histogram('ends.none', [{ at: 10, counts: [1, 2], bounds: [Infinity] }]),
    gauge('named.load', [{ ...point, labels: { __name__: 'forged', '': 'x', 'host.name': 'two' } }]),
  ])
  await store([gauge('lists.other', [{ ...point, labels: { 'other.key': 'x' } }])], { workspaceId: 'ws_2' })
})

async function list(path: string, parameters: readonly (readonly [string, string])[] = []): Promise<unknown[]> {
  const { status, body } = await askPrometheus(path, [...Object.entries(range), ...parameters])
  expect({ code: status, ...body }).toMatchObject({ code: 200, status: 'success' })
  return body.data as unknown[]
}

const match = (...selectors: readonly string[]) => selectors.map(text => ['match[]', text] as const)

describe('lists of the interface of Prometheus', () => {
  it('have the names of labels', async () => {
    const ofAll = await list('/labels')
    expect(ofAll).toEqual(expect.arrayContaining(['__name__', 'host.name', 'http.route', 'le', 'service.name']))
    expect(ofAll).not.toContain('other.key')
    expect(await list('/labels', match('{"lists.load"}'))).toEqual([
      ...['__name__', 'host.name', 'service.instance.id', 'service.name', 'surface.id'],
    ])
    expect(await list('/labels', match('{"lists.nothing"}'))).toEqual([])
  })

  it('have the values of a label, whose name may be escaped', async () => {
    expect(await list('/label/http.route/values')).toEqual(['/a'])
    expect(await list('/label/U__http_2e_route/values')).toEqual(['/a'])
    expect(await list('/label/service.name/values', match('{"lists.load"}'))).toEqual(['shop'])
    expect(await list('/label/le/values', match('{"lists.latency_bucket"}'))).toEqual(['+Inf', '0.5'])
    expect(await list('/label/nothing/values')).toEqual([])
  })

  it('have the names of metrics, with those of the parts of distributions', async () => {
    expect(await list('/label/__name__/values', match('{__name__=~"lists.*"}'))).toEqual([
      ...['lists.deltas', 'lists.latency_bucket', 'lists.latency_count', 'lists.latency_sum'],
      ...['lists.load', 'lists.requests'],
    ])
    expect(await list('/label/__name__/values', match('{__name__=~"lists.*_count"}'))).toEqual(['lists.latency_count'])
  })

  it('have one +Inf bucket, also of a histogram whose sender names it as a bound', async () => {
    expect(await list('/label/le/values', match('{__name__=~"ends.*_bucket"}'))).toEqual(['+Inf', '-Inf', '0.5'])
    const buckets = ['-Inf', '0.5', '+Inf'].map(le => ({ __name__: 'ends.latency_bucket', le, ...own }))
    expect(await list('/series', match('{"ends.latency_bucket"}'))).toEqual(buckets)
    const valuesOf = async (query: string) => {
      const { body } = await askPrometheus('/query', { query, time: String(seconds + 60) })
      const { result } = body.data as { result: { metric: { le: string }; value: [number, string] }[] }
      return Object.fromEntries(result.map(({ metric, value }) => [metric.le, value[1]]))
    }
    expect(await valuesOf('{"ends.latency_bucket"}')).toEqual({ '-Inf': '1', '0.5': '3', '+Inf': '10' })
    expect(await valuesOf('{"ends.latency_bucket", le="+Inf"}')).toEqual({ '+Inf': '10' })
    expect(await valuesOf('{"ends.none_bucket"}')).toEqual({ '+Inf': '3' })
  })

  it('have no label of an attribute without a key, or with the key __name__', async () => {
    const labels = { __name__: 'named.load', 'host.name': 'two', ...own }
    expect(await list('/series', match('{"named.load"}'))).toEqual([labels])
    expect(await list('/labels', match('{"named.load"}'))).toEqual([
      ...['__name__', 'host.name', 'service.instance.id', 'service.name', 'surface.id'],
    ])
    const { body } = await askPrometheus('/query', { query: '{"named.load"}', time: String(seconds + 60) })
    expect(body.data).toMatchObject({ result: [{ metric: labels }] })
  })

  it('have series of several selectors', async () => {
    const found = await list(
      '/series',
      match('{"lists.load"}', '{"lists.latency_bucket"}', '{"lists.load", "host.name"="one"}'),
    )
    expect(found).toEqual([
      { __name__: 'lists.load', 'host.name': 'one', ...own },
      { __name__: 'lists.latency_bucket', le: '0.5', ...own },
      { __name__: 'lists.latency_bucket', le: '+Inf', ...own },
    ])
    expect(await list('/series', match('{"lists.latency_bucket", le="0.5"}'))).toHaveLength(1)
    expect(await list('/series', match('{"lists.load", "host.name"!="one"}'))).toEqual([])
  })

  it('state that they are truncated', async () => {
    const { body } = await askPrometheus('/series', [
      ...Object.entries(range),
      ['limit', '2'],
      ...match('{__name__=~"lists.*"}'),
    ])
    expect(body.data).toHaveLength(2)
    expect(body.warnings).toEqual(['results truncated due to limit'])
  })

  it('are the same by POST', async () => {
    const parameters = [...Object.entries(range), ...match('{"lists.load"}')]
    for (const path of ['/series', '/labels']) {
      const byGet = await askPrometheus(path, parameters)
      expect(await askPrometheus(path, parameters, { method: 'POST' })).toEqual(byGet)
    }
  })

  it('have nothing of another workspace', async () => {
    const { body } = await askPrometheus('/series', [...Object.entries(range), ...match('{"lists.load"}')], {
      bearer: otherToken,
    })
    expect(body).toEqual({ status: 'success', data: [] })
  })

  it('have types, descriptions and units', async () => {
    const { body } = await askPrometheus('/metadata')
    expect(body).toMatchObject({ status: 'success' })
    const one = await askPrometheus('/metadata', { metric: 'lists.nothing' })
    expect(one.body.data).toEqual({})
  })
})

describe('a query of what Prometheus does not have', () => {
  async function valuesOf(query: string): Promise<unknown> {
    const { body } = await askPrometheus('/query', { query, time: String(seconds + 60) })
    expect(body).toMatchObject({ status: 'success' })
    return (body.data as { result: { metric: object; value: [number, string] }[] }).result.map(({ metric, value }) => [
      metric,
      value[1],
    ])
  }

  it('reads names with dots, in quotes', async () => {
    expect(await valuesOf('{"lists.load", "host.name"=~"o.*"}')).toEqual([
      [{ __name__: 'lists.load', 'host.name': 'one', ...own }, '1'],
    ])
    expect(await valuesOf('sum by ("host.name", "service.name") ({"lists.load"})')).toEqual([
      [{ 'host.name': 'one', 'service.name': 'shop' }, '1'],
    ])
  })

  it('adds deltas, and leaves out what was received twice', async () => {
    await store([deltas('lists.deltas', [{ ...point, value: 6, labels: { le: 'mine' } }])])
    expect(await valuesOf('sum(increase({"lists.deltas"}[5m]))')).toEqual([[{}, '6']])
    expect(await valuesOf('sum(rate({"lists.deltas"}[5m]))')).toEqual([[{}, '0.02']])
  })

  it('tells series with the same labels apart', async () => {
    const of = (unit: string) => store([gauge('lists.twins', [point], unit)])
    await of('s')
    await of('ms')
    const found = (await valuesOf('{"lists.twins"}')) as [Record<string, string>, string][]
    expect(found.map(([labels]) => labels['series.id'])).toEqual([
      expect.stringMatching(/^[0-9a-f]{16}$/),
      expect.stringMatching(/^[0-9a-f]{16}$/),
    ])
    expect(await valuesOf('sum({"lists.twins"})')).toEqual([[{}, '2']])
  })
})

describe('a query that is refused', () => {
  it.each([
    ['irate(a[1m])', /"query": 1:1: the function irate\(\) is not supported: docs\/grafana\.md/],
    ['count_values("x", a)', /1:1: the aggregation count_values\(\) is not supported/],
    ['max_over_time(a[5m:1m])', /1:15: a subquery is not supported/],
    ['a @ 10', /1:1: the modifier @ is not supported/],
    ['1 +\na atan2 b', /2:3: the operator atan2 is not supported/],
    ['label_replace(a, "b", "$1", "c", "(.*)")', /the function label_replace\(\) is not supported/],
    ['a[5m]', /a range vector as the result is not supported/],
    ['{__name__=~"a.*"}', /without the name of one metric is not supported/],
    ['{"lists.load", b=~"("}', /error parsing regexp/],
    ['a +', /1:4: parse error: unexpected end of input/],
    ['unknown(a)', /1:8: parse error: unknown function with name "unknown"/],
    [`${'('.repeat(200)}a${')'.repeat(200)}`, /nested more than 64 deep/],
    [Array.from({ length: 11 }, (_, i) => `a${i}`).join(' + '), /at most 10 selectors/],
    ['a[40d]', /range vector/],
    ['sum(rate(a[40d]))', /at most 31 days of points/],
  ])('names the construct: %s', async (query, message) => {
    const { status, body } = await askPrometheus('/query', { query, time: String(seconds + 60) })
    expect({ code: status, ...body }).toMatchObject({
      status: 'error',
      errorType: 'bad_data',
      error: expect.stringMatching(message),
    })
    expect(status).toBe(400)
  })

  it('has the form of Prometheus, whatever the reason is', async () => {
    expect(await askPrometheus('/query', {}, { bearer: 'nobody' })).toMatchObject({
      status: 401,
      body: { status: 'error', errorType: 'unauthorized', code: 'AUTH_MISSING' },
    })
    expect(await askPrometheus('/query')).toMatchObject({
      status: 400,
      body: { errorType: 'bad_data', error: 'invalid parameter "query": is required' },
    })
    for (const query of ['a + rate(b[99999999999999y])', 'a offset 99999999999y', 'a - a offset -99y']) {
      expect((await askPrometheus('/query', { query })).status).toBeOneOf([200, 400])
    }
    const fine = { query: '1', start: '0', end: '11002', step: '1' }
    expect((await askPrometheus('/query_range', fine)).body.error).toMatch(/exceeded maximum resolution of 11,000/)
    expect((await askPrometheus('/query_range', { ...fine, step: '1e300' })).body.error).toMatch(
      /^invalid parameter "step"/,
    )
    expect((await askPrometheus('/query_range', { ...fine, start: 'x' })).body.error).toMatch(
      /^invalid parameter "start"/,
    )
  })
})
