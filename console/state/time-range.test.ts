import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeRange, rangeOf, timesOf } from './time-range.ts'
import { parseTyped } from './typed-range.ts'

/** A Tuesday. Times are of the zone in which the test runs. */
const NOW = new Date(2026, 11, 1, 15, 30)
const at = (month: number, day: number, hours = 0, minutes = 0, year = 2026) =>
  new Date(year, month - 1, day, hours, minutes).toISOString()

describe('a typed range', () => {
  it.each([
    ['last 3 h', { from: 'now-3h' }],
    ['15 min', { from: 'now-15m' }],
    ['Last 2 weeks', { from: 'now-14d' }],
    ['last hour', { from: 'now-1h' }],
    ['any time', { from: 'all' }],
    ['yesterday 14:00 – 14:10', { from: at(11, 30, 14), to: at(11, 30, 14, 10) }],
    ['yesterday 14:00-14:10', { from: at(11, 30, 14), to: at(11, 30, 14, 10) }],
    ['yesterday', { from: at(11, 30), to: at(12, 1) }],
    ['today', { from: at(12, 1) }],
    ['since 14:00', { from: at(12, 1, 14) }],
    ['2026-11-29', { from: at(11, 29), to: at(11, 30) }],
    ['Nov 29 - Nov 30 08:00', { from: at(11, 29), to: at(11, 30, 8) }],
    ['30 nov 23:00 to 01:00', { from: at(11, 30, 23), to: at(12, 1, 1) }],
    ['Dec 24', { from: at(12, 24, 0, 0, 2025), to: at(12, 25, 0, 0, 2025) }],
    ['monday 09:00 until now', { from: at(11, 30, 9) }],
    ['tue', { from: at(11, 24), to: at(11, 25) }],
    [
      '2026-11-30T14:00:00Z..2026-11-30T14:10:00Z',
      { from: '2026-11-30T14:00:00.000Z', to: '2026-11-30T14:10:00.000Z' },
    ],
  ])('%s', (text, range) => {
    expect(parseTyped(text, NOW)).toEqual(range)
  })

  it.each(['', 'soon', '0 h', '25:00', 'Feb 30', 'yesterday 14:10 – yesterday 14:00', 'Dec 2 2026', '1 – 2 – 3'])(
    'refuses "%s"',
    text => {
      expect(parseTyped(text, NOW)).toBeUndefined()
    },
  )

  it('is read as it is shown', () => {
    const second = fc.integer({ min: Date.UTC(2020) / 1_000, max: NOW.getTime() / 1_000 - 2 })
    const iso = (s: number) => new Date(s * 1_000).toISOString()
    fc.assert(
      fc.property(second, fc.integer({ min: 1, max: 40 * 86_400 }), (from, seconds) => {
        const to = Math.min(from + seconds, NOW.getTime() / 1_000 - 1)
        const range = { from: iso(from), to: iso(to) }
        // Around a change of the zone, a time of the day is missing or there twice.
        const offset = (s: number) => new Date(s * 1_000).getTimezoneOffset()
        if (new Set([from - 7_200, from + 7_200, to - 7_200, to + 7_200].map(offset)).size > 1) return
        expect(parseTyped(describeRange(range, NOW), NOW)).toEqual(range)
      }),
    )
  })
})

describe('the range of an address', () => {
  const nowMs = NOW.getTime()
  const times = (query: string, isBounded = false) => timesOf(new URLSearchParams(query), { isBounded, nowMs })
  const ago = (hours: number) => new Date(nowMs - hours * 3_600_000).toISOString()

  it('is the last day where none is named, or no range', () => {
    for (const query of ['', 'from=', 'from=never', 'from=2026-11-30T00:00:00Z&to=x', 'to=2026-11-30T00:00:00Z']) {
      expect(times(query), query).toEqual({ $from: ago(24) })
    }
  })

  it('is relative, absolute, or without a beginning', () => {
    expect(times('from=now-7d')).toEqual({ $from: ago(168) })
    expect(times('from=2026-11-30T00:00:00.000Z&to=2026-11-30T01:00:00.000Z')).toEqual({
      $from: '2026-11-30T00:00:00.000Z',
      to: '2026-11-30T01:00:00.000Z',
    })
    expect(times('from=all')).toEqual({})
    expect(times('from=all', true)).toEqual({ $from: ago(31 * 24) })
  })

  it('is shown in words', () => {
    const words = (query: string) => describeRange(rangeOf(new URLSearchParams(query)), NOW)
    expect(words('')).toBe('Last 24 hours')
    expect(words('from=now-3d')).toBe('Last 3 days')
    expect(words('from=all')).toBe('Any time')
    expect(words(`from=${at(11, 30, 14)}&to=${at(11, 30, 14, 10)}`)).toBe('Nov 30 14:00 – 14:10')
    expect(words(`from=${at(11, 30, 14)}`)).toBe('Since Nov 30 14:00')
  })
})
