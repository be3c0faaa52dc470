import { describe, expect, it } from 'vitest'
import { ratiosByRound, summarize } from './statistics.ts'

describe('summarize', () => {
  it.each([
    [[3], { median: 3, min: 3, max: 3 }],
    [[10, 2, 9], { median: 9, min: 2, max: 10 }],
    [[4, 1, 10, 2], { median: 3, min: 1, max: 10 }],
  ])('finds the middle of %j', (samples, summary) => {
    const given = [...samples]
    expect(summarize(samples)).toEqual(summary)
    expect(samples).toEqual(given)
  })

  it('throws without samples', () => {
    expect(() => summarize([])).toThrow(RangeError)
  })
})

describe('ratiosByRound', () => {
  it('divides samples of the same round', () => {
    expect(ratiosByRound([10, 30], [5, 10])).toEqual([2, 3])
    expect(() => ratiosByRound([1], [1, 2])).toThrow(/same rounds/)
  })
})
