import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LatencyHistogram } from './latency-histogram.ts'

const latency = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 100_000, noNaN: true }))

it('returns percentiles that are at most 1 % and 1 µs above the exact ones, and never below', () => {
  fc.assert(
    fc.property(fc.array(latency, { minLength: 1, maxLength: 500 }), values => {
      const histogram = new LatencyHistogram()
      for (const value of values) histogram.record(value)
      const sorted = values.map(value => Math.round(value * 1_000) / 1_000).sort((a, b) => a - b)
      const exact = (quantile: number) => sorted[Math.ceil(sorted.length * quantile) - 1] as number
      const { p50Ms, p99Ms, p999Ms, maxMs } = histogram.percentiles()
      for (const [given, wanted] of [
        [p50Ms, exact(0.5)],
        [p99Ms, exact(0.99)],
        [p999Ms, exact(0.999)],
      ] as const) {
        expect(given).toBeGreaterThanOrEqual(wanted)
        expect(given).toBeLessThanOrEqual(wanted * 1.01 + 0.001)
      }
      expect(maxMs).toBe(sorted.at(-1))
    }),
  )
})

it('is empty after a reset', () => {
  const histogram = new LatencyHistogram()
  histogram.record(5)
  histogram.reset()
  expect(histogram.count).toBe(0)
  expect(histogram.percentiles()).toEqual({ p50Ms: 0, p99Ms: 0, p999Ms: 0, maxMs: 0 })
})
