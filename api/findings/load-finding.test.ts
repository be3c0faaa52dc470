import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../schemas/units.ts'
import { chooseBuckets } from './load-finding.ts'

const now = Date.UTC(2026, 10, 21, 14, 20)
const nothing = { fromMs: undefined, toMs: undefined, firstMs: now - 3 * DAY_MS, nowMs: now }

it('counts by the hour, and by longer buckets when there would be too many hours', () => {
  expect(chooseBuckets(nothing)).toEqual({
    from: Date.UTC(2026, 10, 18, 14) / 1_000,
    to: Date.UTC(2026, 10, 21, 15) / 1_000,
    bucketSeconds: 3_600,
  })
  expect(chooseBuckets({ ...nothing, firstMs: now - 30 * DAY_MS }).bucketSeconds).toBe(7_200)
})

it('counts by five minutes when a short time is requested', () => {
  const requested = { ...nothing, fromMs: now - HOUR_MS + 1, toMs: now }
  expect(chooseBuckets(requested)).toEqual({ from: (now - HOUR_MS) / 1_000, to: now / 1_000, bucketSeconds: 300 })
})

it('has at most one bucket for a time in the future', () => {
  const { from, to } = chooseBuckets({ ...nothing, fromMs: now + DAY_MS })
  expect(from).toBe(Math.floor((now + DAY_MS) / 300_000) * 300)
  expect(to - from).toBeLessThanOrEqual(300)
})

it('covers any requested time with at most 400 whole buckets', () => {
  const ms = fc.option(fc.integer({ min: -1e14, max: 1e14 }), { nil: undefined })
  fc.assert(
    fc.property(ms, ms, (fromMs, toMs) => {
      const { from, to, bucketSeconds } = chooseBuckets({ ...nothing, fromMs, toMs })
      const count = (to - from) / bucketSeconds
      expect(Number.isInteger(count) && count >= 0 && count <= 400).toBe(true)
      expect(from % bucketSeconds).toBe(0)
      expect(from).toBeGreaterThanOrEqual(0)
      expect(to).toBeLessThan(2 ** 32)
      const end = Math.min(Math.max((toMs ?? Math.max(now, fromMs ?? now)) / 1_000, 0), 2 ** 32 - 864_000)
      expect(to).toBeGreaterThanOrEqual(end)
      expect(to - end).toBeLessThan(bucketSeconds)
    }),
  )
})
