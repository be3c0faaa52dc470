import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../schemas/units.ts'
import { nextAttemptAtMs } from './retry-table.ts'

describe('the next attempt', () => {
  it('follows the table of Standard Webhooks, whose last attempt is 75:35:05 after the first', () => {
    let atMs = 0
    const times: number[] = []
    for (let attempts = 1; attempts < 10; attempts++) {
      atMs = nextAttemptAtMs({ attempts, failedAtMs: atMs }, 0) ?? Number.NaN
      times.push(atMs / SECOND_MS)
    }
    expect(times).toEqual([5, 305, 2_105, 9_305, 27_305, 63_305, 113_705, 185_705, 272_105])
    expect(nextAttemptAtMs({ attempts: 10, failedAtMs: atMs }, 0)).toBeUndefined()
  })

  it('waits for as long as the receiver has requested, but never shorter than the table', () => {
    const next = (attempts: number, retryAfterMs: number) =>
      nextAttemptAtMs({ attempts, failedAtMs: 0, retryAfterMs }, 0)
    expect(next(1, HOUR_MS)).toBe(HOUR_MS)
    expect(next(4, SECOND_MS)).toBe(2 * HOUR_MS)
    expect(next(10, SECOND_MS)).toBeUndefined()
  })

  it('is at most a tenth later by chance', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, random) => {
        const [least = 0, at = 0] = [0, random].map(share => nextAttemptAtMs({ attempts, failedAtMs: DAY_MS }, share))
        expect(at).toBeGreaterThanOrEqual(least)
        expect(at - DAY_MS).toBeLessThanOrEqual((least - DAY_MS) * 1.1 + 1)
      }),
    )
  })
})
