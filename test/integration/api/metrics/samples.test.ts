import { describe, expect, it } from 'vitest'
import { askSeries, deltas, gauge, iso, newName, otherToken, readSeries, readValues, store, sum } from './fixture.ts'

describe('series of a gauge', () => {
  it('have a value for each step, and null for a step without points', async () => {
    const name = newName()
    await store([
      gauge(name, [
        { at: -1, value: 1_000 },
        { at: 0, value: 1 },
        { at: 59.999, value: 3 },
        { at: 120, value: 5 },
        { at: 240, value: 1_000 },
      ]),
    ])
    expect(await readSeries(name)).toEqual({
      name,
      kind: { type: 'gauge', unit: '' },
      otherKinds: [],
      aggregation: 'average',
      from: iso(0),
      to: iso(240),
      stepSeconds: 60,
      seriesCount: 1,
      truncated: false,
      series: [{ labels: {}, values: [2, null, 5, null] }],
    })
    expect(await readValues(name, { aggregation: 'min' })).toEqual([1, null, 5, null])
    expect(await readValues(name, { aggregation: 'max' })).toEqual([3, null, 5, null])
    expect(await readValues(name, { aggregation: 'last' })).toEqual([3, null, 5, null])
  })

  it('leave out points without a recorded or a finite value', async () => {
    const name = newName()
    await store([
      gauge(name, [
        { at: 1, value: 7 },
        { at: 2, value: 9, flags: 1 },
        { at: 3, value: Number.NaN },
        { at: 4, value: Number.POSITIVE_INFINITY },
        { at: 61, value: 9, flags: 1 },
      ]),
    ])
    expect(await readValues(name, { to: 120 })).toEqual([7, null])
  })

  it('are aggregated over time first, and then over the series of a group', async () => {
    const name = newName()
    const [a, b] = [{ host: 'a' }, { host: 'b' }]
    await store([
      gauge(name, [
        { at: 0, value: 1, labels: a },
        { at: 10, value: 3, labels: a },
        { at: 20, value: 8, labels: a },
        { at: 5, value: 10, labels: b },
      ]),
    ])
    const valueBy = async (aggregation: string) => (await readValues(name, { to: 60, aggregation }))[0]
    expect(await valueBy('average')).toBe((4 + 10) / 2)
    expect(await valueBy('sum')).toBe(8 + 10)
    expect(await valueBy('last')).toBe(8)
    expect(await valueBy('min')).toBe(1)
    expect(await valueBy('max')).toBe(10)
  })

  it('are those of a cumulative sum that is not monotonic, too', async () => {
    const name = newName()
    const points = [
      { at: 0, value: 5 },
      { at: 60, value: 2 },
    ]
    await store([sum(name, points, { isMonotonic: false })])
    expect(await readValues(name, { to: 120, aggregation: 'sum' })).toEqual([5, 2])
  })
})

describe('series by labels', () => {
  it('are one for each combination of values, filtered by label, service and surface', async () => {
    const name = newName()
    const point = (value: number, labels: Record<string, string>) => ({ at: 0, value, labels })
    await store([
      gauge(name, [
        point(1, { route: '/a', method: 'GET' }),
        point(2, { route: '/a', method: 'PUT' }),
        point(4, { route: '/b', method: 'GET' }),
        point(8, { method: 'GET' }),
      ]),
    ])
    await store([gauge(name, [point(16, { route: '/a', method: 'GET' })])], { service: 'pay', surfaceId: 'srf_2' })
    const read = async (parameters: object) => {
      const { series } = await readSeries(name, { to: 60, aggregation: 'sum', ...parameters })
      return series.map(({ labels, values }) => [labels, values[0]])
    }
    expect(await read({ groupBy: ['route'] })).toEqual([
      [{}, 8],
      [{ route: '/a' }, 19],
      [{ route: '/b' }, 4],
    ])
    expect(await read({ groupBy: ['method', 'service.name'] })).toEqual([
      [{ method: 'GET', 'service.name': 'pay' }, 16],
      [{ method: 'GET', 'service.name': 'shop' }, 13],
      [{ method: 'PUT', 'service.name': 'shop' }, 2],
    ])
    expect(await read({ filter: { route: '/a', method: 'GET' }, groupBy: ['surface.id'] })).toEqual([
      [{ 'surface.id': 'srf_1' }, 1],
      [{ 'surface.id': 'srf_2' }, 16],
    ])
    expect(await read({ filter: { route: '' } })).toEqual([[{}, 8]])
    expect(await read({ filter: { "it's": '\\' } })).toEqual([])
    expect(await read({ service: 'pay' })).toEqual([[{}, 16]])
    expect(await read({ surface: 'srf_1', filter: { 'service.name': 'shop' } })).toEqual([[{}, 15]])
  })

  it('are the first hundred of all, and their number', async () => {
    const name = newName()
    const labels = Array.from({ length: 103 }, (_, i) => String(i).padStart(3, '0'))
    await store([
      gauge(
        name,
        labels.map(host => ({ at: 0, value: 1, labels: { host } })),
      ),
    ])
    const { series, seriesCount, truncated } = await readSeries(name, { groupBy: ['host'] })
    expect(series.map(one => one.labels.host)).toEqual(labels.slice(0, 100))
    expect({ seriesCount, truncated }).toEqual({ seriesCount: 103, truncated: true })
  })
})

describe('a metric with several kinds of points', () => {
  it('is read by the kind of its newest point, unless type or unit choose another', async () => {
    const name = newName()
    await store([
      gauge(name, [{ at: 0, value: 1 }], 'ms'),
      gauge(name, [{ at: 120, value: 2 }], 's'),
      deltas(name, [{ at: 60, since: 0, value: 3 }]),
    ])
    const delta = { type: 'sum', unit: '', temporality: 'delta', isMonotonic: true }
    const newest = await readSeries(name)
    expect(newest).toMatchObject({ kind: { unit: 's' }, otherKinds: [delta, { type: 'gauge', unit: 'ms' }] })
    expect(newest.series[0]?.values).toEqual([null, null, 2, null])
    expect(await readValues(name, { unit: 'ms' })).toEqual([1, null, null, null])
    expect(await readSeries(name, { type: 'sum' })).toMatchObject({ kind: delta, aggregation: 'rate' })
    expect((await askSeries(name, { unit: 'h' })).status).toBe(404)
  })
})

describe('a metric', () => {
  it('is not found without points in the range, and in another workspace', async () => {
    const name = newName()
    await store([gauge(name, [{ at: 0, value: 1 }])])
    const unknown = await askSeries('unknown')
    expect(unknown).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    expect((await askSeries(name, {}, otherToken)).body).toEqual(unknown.body)
    expect((await askSeries(name, { from: 60 })).body).toEqual(unknown.body)
  })
})
