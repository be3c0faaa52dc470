import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nano, newName, readSeries, type SentMetric, type SeriesParameters, store } from './fixture.ts'

const DELTA = 1
const CUMULATIVE = 2
const QUANTILES = [0, 0.5, 0.95, 1]

/** A point: the values that it counts, at a scale. */
interface Sent {
  readonly at: number
  readonly since?: number
  readonly scale: number
  readonly values: readonly number[]
}

/** Returns buckets of values as an SDK makes them (OTLP: bucket i ends at 2^((i + 1) / 2^scale), inclusive). */
function bucketsOf(values: readonly number[], scale: number) {
  if (values.length === 0) return { offset: 0, bucketCounts: [] }
  const indexes = values.map(value => Math.ceil(Math.log2(value) * 2 ** scale) - 1)
  const offset = Math.min(...indexes)
  const bucketCounts = Array.from({ length: Math.max(...indexes) - offset + 1 }, () => 0n)
  for (const index of indexes) bucketCounts[index - offset] = (bucketCounts[index - offset] ?? 0n) + 1n
  return { offset, bucketCounts }
}

function exponential(name: string, points: readonly Sent[], aggregationTemporality: number): SentMetric {
  const dataPoints = points.map(({ at, since, scale, values }) => ({
    ...{ timeUnixNano: nano(at), startTimeUnixNano: since === undefined ? 0n : nano(since), scale },
    ...{ count: BigInt(values.length), zeroCount: BigInt(values.filter(value => value === 0).length) },
    positive: bucketsOf(
      values.filter(value => value > 0),
      scale,
    ),
    negative: bucketsOf(
      values.filter(value => value < 0).map(value => -value),
      scale,
    ),
  }))
  return { name, data: { case: 'exponentialHistogram', value: { aggregationTemporality, dataPoints } } }
}

const exactOf = (values: readonly number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.max(Math.ceil(q * values.length) - 1, 0)] as number

/** Expects each quantile to be in the bucket of the exact one: their quotient is at most that of the ends of a bucket. */
async function expectQuantiles(name: string, values: readonly number[], scale: number, parameters: SeriesParameters) {
  const base = 2 ** (2 ** -scale) * (1 + 1e-9)
  for (const q of QUANTILES) {
    const { series } = await readSeries(name, { aggregation: 'quantile', quantile: q, ...parameters })
    expect(series).toHaveLength(1)
    expect(Object.keys(series[0] ?? {})).toEqual(['labels', 'values'])
    const found = series[0]?.values.at(-1) as number
    const exact = exactOf(values, q)
    if (exact === 0) expect({ q, found }).toEqual({ q, found: 0 })
    else
      expect({ q, found, exact, isNear: found / exact <= base && exact / found <= base }).toMatchObject({
        isNear: true,
      })
  }
}

const value = fc.oneof(
  { weight: 8, arbitrary: fc.double({ min: -6, max: 6, noNaN: true }).map(power => Math.exp(power)) },
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.double({ min: -5, max: 5, noNaN: true }).map(power => -Math.exp(power)) },
)
const values = fc.array(value, { minLength: 1, maxLength: 200 })
const scale = fc.integer({ min: -2, max: 6 })

/** A hundred values from e^-5 to e^5, in no order; every tenth is negative. Random values are often few, and of one scale. */
const spread = (shift: number) =>
  Array.from({ length: 100 }, (_, i) => (i % 10 === 0 ? -1 : 1) * Math.exp(((i * 37 + shift) % 100) / 10 - 5))

describe('quantiles of an exponential histogram', () => {
  it('are as near to the exact ones as buckets allow, whatever the scales of deltas of several series', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ values, scale }), { minLength: 1, maxLength: 3 }), async sent => {
        const name = newName()
        for (const [i, point] of sent.entries()) {
          await store([exponential(name, [{ at: 60, since: 0, ...point }], DELTA)], { service: `s${i}` })
        }
        const all = sent.flatMap(point => point.values)
        await expectQuantiles(name, all, Math.min(...sent.map(point => point.scale)), { to: 60 })
      }),
      {
        ...{ numRuns: 3, endOnFailure: true },
        examples: [
          [
            [
              { values: spread(0), scale: 6 },
              { values: spread(5), scale: 2 },
            ],
          ],
        ],
      },
    )
  })

  it('are those of the observations of a step when points are cumulative and change their scale', async () => {
    await fc.assert(
      fc.asyncProperty(values, values, values, scale, fc.integer({ min: 0, max: 3 }), async (a, b, c, from, less) => {
        const name = newName()
        const points = [
          { at: 0, since: -3_600, scale: from, values: a },
          { at: 30, since: -3_600, scale: from, values: [...a, ...b] },
          { at: 60, since: -3_600, scale: from - less, values: [...a, ...b, ...c] },
        ]
        await store([exponential(name, points, CUMULATIVE)])
        await expectQuantiles(name, [...b, ...c], from - less, { to: 60 })
      }),
      { numRuns: 3, endOnFailure: true, examples: [[spread(0), spread(3), spread(7), 6, 3]] },
    )
  })

  it('begin again when the series does, and are unknown without observations', async () => {
    const name = newName()
    const first = [1, 2, 4, 8, 16, 32, 64]
    const points = [
      { at: 0, since: -3_600, scale: 3, values: first },
      { at: 60, since: 30, scale: 3, values: [1_000, 1_000] },
      { at: 120, since: 30, scale: 3, values: [1_000, 1_000] },
      // The start is not stated later, and a bucket has fewer observations, though all have more.
      { at: 180, scale: 3, values: [1, 1, 2_000, 2_000, 2_000] },
    ]
    await store([exponential(name, points, CUMULATIVE)])
    const { series } = await readSeries(name, { aggregation: 'quantile', quantile: 0.5 })
    const found = series[0]?.values ?? []
    expect(found[0]).toBeGreaterThan(900)
    expect(found[1]).toBeNull()
    expect(found[2]).toBeGreaterThan(1_800)
  })
})
