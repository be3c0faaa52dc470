import { describe, expect, it } from 'vitest'
import { formatTime } from './format.ts'

describe('a time', () => {
  const now = new Date(2026, 10, 25, 12, 0, 0).getTime()
  const iso = (...parts: [number, number, number, number, number, number, number]) => new Date(...parts).toISOString()

  it.each([
    ['today', iso(2026, 10, 25, 9, 8, 7, 654)],
    ['yesterday', iso(2026, 10, 24, 9, 8, 7, 654)],
    ['last year', iso(2025, 10, 24, 9, 8, 7, 654)],
  ])('of %s has seconds, and milliseconds on request', (_, time) => {
    expect(formatTime(time, { now })).toMatch(/09:08:07(?![.,]\d)/)
    expect(formatTime(time, { now, isPrecise: true })).toMatch(/09:08:07[.,]654/)
  })

  it('has its date unless it is of today, and its year unless it is of this year', () => {
    expect(formatTime(iso(2026, 10, 25, 9, 8, 7, 0), { now })).not.toMatch(/25|2026/)
    expect(formatTime(iso(2026, 10, 24, 9, 8, 7, 0), { now })).toMatch(/24/)
    expect(formatTime(iso(2026, 10, 24, 9, 8, 7, 0), { now })).not.toMatch(/2026/)
    expect(formatTime(iso(2025, 10, 24, 9, 8, 7, 0), { now })).toMatch(/2025/)
  })
})
