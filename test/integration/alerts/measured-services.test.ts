import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { MeasuredStage, minutesAfter, T } from '../../support/alerts/measured-stage.ts'

const stage = await MeasuredStage.create('measured_services')

beforeEach(() => stage.renew())
afterAll(() => stage.drop())

describe('service.errors', () => {
  const kind = 'service.errors'
  const rule = { errors: { percent: 5, minutes: 5, atLeast: 20 } }

  it('holds while the share of failed calls of its minutes has reached the threshold, of as many calls', async () => {
    await stage.receiveCalls([
      { atMs: T, calls: 20, errors: 1 },
      { atMs: T + 3 * MINUTE_MS, calls: 20, errors: 0 },
      // Those that were made, and those of others, do not count.
      { atMs: T, calls: 100, errors: 100, kind: 3 },
      { atMs: T, calls: 100, errors: 100, of: stage.other },
      { atMs: T, calls: 19, errors: 19, service: 'rare' },
      { atMs: T, calls: 20, errors: 20, service: 'mail', environment: 'staging' },
    ])
    const hour = { fromMs: T - HOUR_MS, toMs: T + HOUR_MS, stepMs: MINUTE_MS }
    const read = await stage.measure(kind, { ...rule, services: ['shop', 'rare'] }, hour)
    expect(minutesAfter(read)).toEqual([1, 2, 3])
    expect(read[0]).toEqual({
      atMs: T + MINUTE_MS,
      subject: { service: 'shop', environment: 'production' },
      measured: { what: 'share of failed calls', value: 5, threshold: 5, unit: '%', minutes: 5 },
    })
    expect(await stage.at(kind, { ...rule, environments: ['staging'] }, T + MINUTE_MS)).toMatchObject([
      { subject: { service: 'mail', environment: 'staging' } },
    ])
  })

  it('reads the same of a week at every fifth minute as at single instants', async () => {
    const calls = Array.from({ length: 300 }, (_, i) => ({
      atMs: T + i * 7 * MINUTE_MS,
      calls: 10,
      errors: (i * 3) % 5,
    }))
    await stage.receiveCalls(calls)
    const wide = { errors: { percent: 15, minutes: 12, atLeast: 20 } }
    const week = await stage.measure(kind, wide, { fromMs: T, toMs: T + 7 * DAY_MS, stepMs: 5 * MINUTE_MS })
    expect(week.length).toBeGreaterThan(50)
    const times = new Set(week.map(({ atMs }) => atMs))
    for (let i = 1; i < 40; i++) {
      const atMs = T + i * 50 * MINUTE_MS
      const single = await stage.at(kind, wide, atMs)
      expect(single).toEqual(week.filter(reading => reading.atMs === atMs))
      expect(times.has(atMs)).toBe(single.length > 0)
    }
  })
})

describe('service.latency', () => {
  it('holds while the p95 of its minutes has reached the threshold', async () => {
    await stage.receiveCalls([
      { atMs: T, calls: 90, ms: 20 },
      { atMs: T + MINUTE_MS, calls: 10, ms: 700 },
      { atMs: T + 10 * MINUTE_MS, calls: 10, ms: 700, service: 'mail' },
      { atMs: T + 10 * MINUTE_MS, calls: 90, ms: 700, of: stage.other },
    ])
    const rule = { latency: { p95Ms: 600, minutes: 5, atLeast: 11 } }
    const read = await stage.measure('service.latency', rule, { fromMs: T, toMs: T + HOUR_MS, stepMs: MINUTE_MS })
    expect(minutesAfter(read)).toEqual([2, 3, 4, 5])
    expect(read[0]?.measured).toMatchObject({ what: 'p95 of the duration', threshold: 600, unit: 'ms', minutes: 5 })
    expect(read[0]?.measured.value).toBeGreaterThan(690)
    expect(read[0]?.measured.value).toBeLessThan(710)
  })
})
