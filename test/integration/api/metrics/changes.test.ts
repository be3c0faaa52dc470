import { describe, expect, it } from 'vitest'
import {
  deltaHistogram,
  deltas,
  histogram,
  newName,
  readSeries,
  readValues,
  type Sent,
  type SentHistogram,
  store,
  sum,
} from './fixture.ts'

const HOUR = 3_600

async function valuesOf(points: readonly Sent[], parameters: object = {}): Promise<(number | null)[]> {
  const name = newName()
  await store([sum(name, points)])
  return readValues(name, { aggregation: 'sum', ...parameters })
}

describe('series of a cumulative monotonic sum', () => {
  it('count from zero again after a restart, by their start and by a drop of the value', async () => {
    const name = newName()
    await store([
      sum(name, [
        { at: 0, since: -HOUR, value: 100 },
        { at: 60, since: -HOUR, value: 160 },
        { at: 120, since: -HOUR, value: 220 },
        { at: 180, since: 150, value: 30 },
        { at: 240, since: 150, value: 90 },
      ]),
    ])
    expect(await readSeries(name)).toMatchObject({ aggregation: 'rate', series: [{ values: [1, 1, 0.5, 1] }] })
    expect(await readValues(name, { aggregation: 'sum' })).toEqual([60, 60, 30, 60])
    const dropped = [100, 160, 40, 100].map((value, i) => ({ at: 60 * i, value }))
    expect(await valuesOf(dropped)).toEqual([60, 40, 60, null])
    const grownBeyond = [
      { at: 0, since: -HOUR, value: 10 },
      { at: 60, since: 30, value: 25 },
    ]
    expect(await valuesOf(grownBeyond, { to: 60 })).toEqual([25])
  })

  it('count their first point if they have begun shortly before it', async () => {
    expect(await valuesOf([{ at: 120, since: 60, value: 7 }])).toEqual([null, 7, null, null])
    expect(
      await valuesOf([
        { at: 120, since: -HOUR, value: 7 },
        { at: 180, since: -HOUR, value: 8 },
      ]),
    ).toEqual([...[null, null], ...[1, null]])
    expect(
      await valuesOf([
        { at: 120, value: 7 },
        { at: 180, value: 8 },
      ]),
    ).toEqual([null, null, 1, null])
  })

  it('divide a change between the steps that its time spans', async () => {
    const points = [-30, 30, 90, 150].map((at, i) => ({ at, value: 60 * i }))
    expect(await valuesOf(points, { to: 180 })).toEqual([60, 60, 30])
    const fine = [0, 60].map(at => ({ at, value: at * 2 }))
    expect(await valuesOf(fine, { to: 60, step: 20, aggregation: 'rate' })).toEqual([2, 2, 2])
  })

  it('have a gap while they are silent, and do not count what has changed meanwhile', async () => {
    const points = [0, 60, 600, 660].map(at => ({ at, value: at }))
    const gap = Array(8).fill(null)
    expect(await valuesOf(points, { to: 660 })).toEqual([60, null, ...gap, 60])
    expect(await valuesOf(points, { to: 900, step: 300 })).toEqual([300, 300, 60])
  })

  it('leave out repeated points and those without a recorded value', async () => {
    const points = [
      { at: 0, value: 10 },
      { at: 60, value: 20 },
      { at: 60, value: 20 },
      { at: 90, value: 0, flags: 1 },
      { at: 120, value: 30 },
    ]
    expect(await valuesOf(points, { to: 120 })).toEqual([10, 10])
  })

  it('are aggregated one by one before their changes are added', async () => {
    const of = (host: string, values: readonly number[]) =>
      values.map((value, i) => ({ at: 60 * i, value, labels: { host } }))
    const points = [...of('a', [1_000, 1_006, 6]), ...of('b', [0, 60, 120])]
    expect(await valuesOf(points, { to: 120 })).toEqual([66, 66])
    const name = newName()
    await store([sum(name, points)])
    const { series } = await readSeries(name, { to: 120, groupBy: ['host'] })
    expect(series).toEqual([
      { labels: { host: 'a' }, values: [0.1, 0.1] },
      { labels: { host: 'b' }, values: [1, 1] },
    ])
  })
})

describe('series of a delta sum', () => {
  it('add the values of each step, each point once', async () => {
    const name = newName()
    await store([
      deltas(name, [
        { at: 60, since: 0, value: 5 },
        { at: 60, since: 0, value: 5 },
        { at: 120, since: 60, value: 7 },
        { at: 230, since: 180, value: 3 },
      ]),
    ])
    expect(await readValues(name, { aggregation: 'sum' })).toEqual([5, 7, null, 3])
    expect(await readValues(name, { aggregation: 'rate' })).toEqual([5 / 60, 7 / 60, null, 3 / 60])
  })

  it('count since the point before, or in the step of their time, if their start is not known', async () => {
    const name = newName()
    const points = [
      { at: 60, value: 4 },
      { at: 120, value: 9 },
      { at: 240, since: 180, value: 1 },
    ]
    await store([deltas(name, points)])
    expect(await readValues(name, { aggregation: 'sum' })).toEqual([4, 9, null, 1])
  })

  it('are added to those of cumulative points of the same metric', async () => {
    const name = newName()
    await store([
      deltas(name, [{ at: 60, since: 0, value: 5 }]),
      sum(name, [
        { at: 0, value: 5 },
        { at: 60, value: 15 },
      ]),
    ])
    expect(await readValues(name, { to: 60, aggregation: 'sum' })).toEqual([15])
    expect((await readSeries(name, { to: 120 })).otherKinds).toEqual([])
  })
})

describe('series of a histogram', () => {
  const bounds = [10, 20, 50]
  const quantile = (q: number) => ({ aggregation: 'quantile', quantile: q })
  /** Ten values: two of at most 10, four of at most 20, three of at most 50, and a larger one. */
  const TEN = [2, 4, 3, 1]

  it('have quantiles that are interpolated within a bucket', async () => {
    const name = newName()
    await store([deltaHistogram(name, [{ at: 60, since: 0, counts: TEN, bounds }])])
    const valueAt = async (q: number) => (await readValues(name, { to: 60, ...quantile(q) }))[0]
    expect(await valueAt(0.5)).toBe(10 + (10 * (5 - 2)) / 4)
    expect(await valueAt(0.1)).toBe((10 * 1) / 2)
    expect(await valueAt(0.9)).toBe(50)
    expect(await valueAt(0.8)).toBe(20 + (30 * (8 - 6)) / 3)
    expect(await valueAt(0)).toBe(0)
    expect(await valueAt(1)).toBe(50)
    const { series } = await readSeries(name, { to: 120, ...quantile(0.5) })
    expect(series).toEqual([{ labels: {}, bounds, values: [17.5, null] }])
  })

  it('are those of finite bounds, also if the sender names the end of the last bucket', async () => {
    const name = newName()
    const counts = [2, 4, 2, 1, 1]
    await store([deltaHistogram(name, [{ at: 60, since: 0, counts, bounds: [...bounds, Infinity] }])])
    for (const [q, value] of [
      [0.5, 17.5],
      [0.85, 50],
      [1, 50],
    ] as const) {
      const { series } = await readSeries(name, { to: 60, ...quantile(q) })
      expect(series).toEqual([{ labels: {}, bounds, values: [value] }])
    }
  })

  it('have those of the observations of a step when they are cumulative, also after a restart', async () => {
    const name = newName()
    const before = [100, 0, 0, 0]
    const points: SentHistogram[] = [
      { at: 0, since: -HOUR, counts: before, bounds },
      { at: 60, since: -HOUR, counts: before.map((count, i) => count + (TEN[i] ?? 0)), bounds },
      { at: 120, since: 90, counts: TEN, bounds },
      { at: 180, since: 90, counts: TEN, bounds },
    ]
    await store([histogram(name, points)])
    expect(await readValues(name, quantile(0.5))).toEqual([17.5, 17.5, null, null])
    expect(await readValues(name, { aggregation: 'rate' })).toEqual([10 / 60, 10 / 60, 0, null])
  })

  it('add up over series with the same bounds, and are separate for others', async () => {
    const name = newName()
    const point = { at: 60, since: 0 }
    await store([
      deltaHistogram(name, [
        { ...point, counts: [1, 2, 1, 1], bounds, labels: { host: 'a' } },
        { ...point, counts: [1, 2, 2, 0], bounds, labels: { host: 'b' } },
        { ...point, counts: [0, 4], bounds: [-1], labels: { host: 'c' } },
      ]),
    ])
    const { series, seriesCount } = await readSeries(name, { to: 60, ...quantile(0.5) })
    expect(seriesCount).toBe(2)
    expect(series).toEqual([
      { labels: {}, bounds: [-1], values: [-1] },
      { labels: {}, bounds, values: [17.5] },
    ])
  })

  it('have the average, the sum and the rate of the observations', async () => {
    const name = newName()
    await store([
      histogram(name, [
        { at: 0, counts: [1, 0], bounds: [1], total: 5 },
        { at: 60, counts: [3, 0], bounds: [1], total: 11 },
        { at: 120, counts: [3, 0], bounds: [1], total: 11 },
      ]),
    ])
    expect(await readSeries(name, { to: 180 })).toMatchObject({
      aggregation: 'average',
      series: [{ labels: {}, values: [3, null, null] }],
    })
    expect(await readValues(name, { to: 180, aggregation: 'sum' })).toEqual([6, 0, null])
    expect(await readValues(name, { to: 180, aggregation: 'rate' })).toEqual([2 / 60, 0, null])
  })
})
