import { describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../schemas/units.ts'
import { stepsOf, timeRange } from './time-range.ts'

const NOW = Date.parse('2026-09-21T14:13:20.500Z')
const message = (text: string) => ({ ok: false, problem: { message: expect.stringContaining(text) } })

describe('a range of time', () => {
  it('is the last hour by default, or the hour before its end', () => {
    expect(timeRange({}, NOW)).toEqual({ ok: true, value: { fromMs: NOW - HOUR_MS, toMs: NOW } })
    const to = '2026-09-20T01:00:00+01:00'
    const toMs = Date.parse(to)
    expect(timeRange({ to }, NOW)).toEqual({ ok: true, value: { fromMs: toMs - HOUR_MS, toMs } })
  })

  it('is refused if it is empty or longer than 31 days', () => {
    expect(timeRange({ from: '2026-09-21T14:13:20.500Z' }, NOW)).toMatchObject(message('from must be before "to"'))
    expect(timeRange({ from: '2026-08-21T14:13:20.499Z' }, NOW)).toMatchObject(message('at most 31 days'))
    expect(timeRange({ from: '2026-08-21T14:13:20.500Z' }, NOW)).toMatchObject({ ok: true })
    expect(timeRange({ from: '9998-01-01T00:00:00Z', to: '9999-01-01T00:00:00Z' }, NOW)).toMatchObject({ ok: false })
  })
})

describe('the steps of a range', () => {
  const minute = Date.parse('2026-09-21T14:13:00Z')

  it('are whole, and begin at multiples of their length', () => {
    const steps = stepsOf({ fromMs: minute + 1, toMs: minute + 60_001 }, 60)
    expect(steps).toEqual({
      ok: true,
      value: { stepSeconds: 60, count: 2, fromMs: minute, toMs: minute + 120_000 },
    })
  })

  it.each([
    [1, 60],
    [24, 300],
    [7 * 24, 3_600],
    [31 * 24, 10_800],
  ])('of %i hours have %i seconds by default', (hours, stepSeconds) => {
    const steps = stepsOf({ fromMs: NOW - hours * HOUR_MS, toMs: NOW }, undefined)
    expect(steps).toMatchObject({ ok: true, value: { stepSeconds } })
  })

  it('are refused when there are more than 1,000', () => {
    expect(stepsOf({ fromMs: minute, toMs: minute + 1_000_000 }, 1)).toMatchObject({
      ok: true,
      value: { count: 1_000 },
    })
    expect(stepsOf({ fromMs: minute, toMs: minute + 1_000_001 }, 1)).toMatchObject(message('1001 steps'))
  })
})
