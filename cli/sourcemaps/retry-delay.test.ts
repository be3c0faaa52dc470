import fc from 'fast-check'
import { expect, it } from 'vitest'
import { retryAfterMs, retryDelayMs } from './retry-delay.ts'

it('waits exponentially longer up to ten seconds, jittered, and never less than Retry-After asks for', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 0, max: 100_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempt, askedMs, random) => {
        const waitMs = retryDelayMs(attempt, askedMs, () => random)
        const fullMs = Math.min(250 * 2 ** (attempt - 1), 10_000)
        expect(waitMs).toBeGreaterThanOrEqual(Math.max(askedMs, Math.floor(fullMs / 2)))
        expect(waitMs).toBeLessThanOrEqual(Math.max(askedMs + 1_000, fullMs))
      },
    ),
  )
})

it('reads Retry-After as seconds or as a date, and takes nothing else for one', () => {
  const now = Date.parse('2026-11-21T10:00:00Z')
  expect(retryAfterMs('7', now)).toBe(7_000)
  expect(retryAfterMs('Sat, 21 Nov 2026 10:00:05 GMT', now)).toBe(5_000)
  expect(retryAfterMs('Sat, 21 Nov 2026 09:00:00 GMT', now)).toBe(0)
  for (const header of [null, '', '-1', '1.5', 'soon', '99999999999999', '2026-11-21'])
    expect(retryAfterMs(header, now)).toBe(0)
})
