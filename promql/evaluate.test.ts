import { expect, it } from 'vitest'
import { evaluate } from './evaluate.ts'
import { parsePromql } from './parse-promql.ts'
import { PromqlError } from './promql-error.ts'

const grid = { startMs: 1_000_000, stepMs: 1_000, count: 11_000 }

it('refuses a query that would compute too many values, before it has computed them', () => {
  const series = Array.from({ length: 5_000 }, (_, i) => ({
    labels: new Map([['i', String(i)]]),
    isDelta: false,
    segments: [[700, 1_000_000, 1, 1, 1_000_000, 1, 0, 1, 1, 1] as const],
  }))
  const startedAt = performance.now()
  const compute = () => evaluate(parsePromql('sum(a) + sum(a)'), { grid, samplesOf: () => series })
  expect(compute).toThrow(PromqlError)
  expect(compute).toThrow(/too many samples/)
  expect(performance.now() - startedAt).toBeLessThan(10_000)
})
