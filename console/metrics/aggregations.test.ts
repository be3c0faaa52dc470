import { expect, it } from 'vitest'
import { aggregationOf, aggregationsOf, labelsOf } from './aggregations.ts'

const defaultOf = (kind: Parameters<typeof aggregationsOf>[0]) => aggregationsOf(kind)[0]?.[1]

it('offers rates of what only grows, and quantiles of histograms with buckets alone', () => {
  expect(defaultOf({ type: 'gauge', unit: '' })).toBe('Average')
  expect(defaultOf({ type: 'sum', unit: '', temporality: 'cumulative', isMonotonic: false })).toBe('Average')
  expect(defaultOf({ type: 'sum', unit: '', temporality: 'cumulative', isMonotonic: true })).toBe('Rate a second')
  expect(defaultOf({ type: 'sum', unit: '', temporality: 'delta', isMonotonic: false })).toBe('Rate a second')
  const quantiles = (type: 'histogram' | 'exponential_histogram' | 'summary') =>
    aggregationsOf({ type, unit: 's' }).filter(([value]) => value.startsWith('p')).length
  expect([quantiles('histogram'), quantiles('exponential_histogram'), quantiles('summary')]).toEqual([5, 5, 0])
})

it('reads aggregations and labels of an address', () => {
  expect(aggregationOf('p95')).toEqual({ aggregation: 'quantile', quantile: 0.95 })
  expect(aggregationOf('max')).toEqual({ aggregation: 'max' })
  expect(aggregationOf(null)).toEqual({})
  expect(labelsOf('http.route=/cart?a=1, http.request.method = GET, broken')).toBe(
    '{"http.route":"/cart?a=1","http.request.method":"GET"}',
  )
  expect(labelsOf('broken')).toBeUndefined()
})
