import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { AlertRule } from '../../../schemas/records/alerts.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { FINDING, MeasuredStage, minutesAfter, SHOP, T, timeOf } from '../../support/alerts/measured-stage.ts'

const stage = await MeasuredStage.create('measured_findings')

beforeEach(() => stage.renew())
afterAll(() => stage.drop())

describe('finding.spiking', () => {
  const kind = 'finding.spiking'

  it('holds from the floor on where nothing occurred before, and in the five minutes of the clock', async () => {
    await stage.throwErrors([{ atMs: T + 10_000, count: 19 }])
    expect(await stage.at(kind, {}, T + 5 * MINUTE_MS)).toEqual([])
    await stage.throwErrors([{ atMs: T + 4 * MINUTE_MS }])
    expect(await stage.at(kind, {}, T + 5 * MINUTE_MS)).toEqual([
      {
        atMs: T + 5 * MINUTE_MS,
        subject: { findingId: FINDING },
        measured: { what: 'occurrences', value: 20, threshold: 20, unit: '', minutes: 5 },
      },
    ])
    expect(await stage.at(kind, {}, T + 6 * MINUTE_MS)).toEqual([])
    expect(await stage.at(kind, { spiking: { times: 1, atLeast: 21 } }, T + 5 * MINUTE_MS)).toEqual([])
  })

  it('compares with the busiest five minutes of the same hour of each of seven days, and of no other', async () => {
    const daysBefore = (days: number, ms = 0) => T - days * DAY_MS + ms
    await stage.throwErrors([
      ...[1, 2, 3, 4, 5, 6, 7].map(days => ({ atMs: daysBefore(days, 50 * MINUTE_MS), count: days === 7 ? 6 : 2 })),
      // The hours before and after, and an eighth day, do not count.
      ...[
        { atMs: daysBefore(1, -MINUTE_MS), count: 40 },
        { atMs: daysBefore(1, HOUR_MS), count: 40 },
      ],
      { atMs: daysBefore(8, 50 * MINUTE_MS), count: 40 },
      { atMs: T, count: 29 },
    ])
    expect(await stage.at(kind, {}, T + 5 * MINUTE_MS)).toEqual([])
    await stage.throwErrors([{ atMs: T + 2 * MINUTE_MS }])
    expect((await stage.at(kind, {}, T + 5 * MINUTE_MS))[0]?.measured).toMatchObject({ value: 30, threshold: 30 })
    expect(await stage.at(kind, { spiking: { times: 5.1, atLeast: 1 } }, T + 5 * MINUTE_MS)).toEqual([])
  })

  it('counts all variants of a finding and what is merged into it, and no row that is the twin of another', async () => {
    const merged = `fnd_${'b'.repeat(26)}`
    stage.merges.set(merged, FINDING)
    await stage.throwErrors([
      { atMs: T, count: 12 },
      { atMs: T, count: 8, variant: 'variant-2', findingId: merged },
    ])
    expect(await stage.at(kind, {}, T + 5 * MINUTE_MS)).toMatchObject([{ subject: { findingId: FINDING } }])
    const twin = { workspace_id: stage.workspaceId, surface_id: SHOP, received_at: timeOf(T), variant_id: 'variant-1' }
    await stage.insert('exception_twins', [{ ...twin, source: 'span_event', change: 1, stored: 1 }])
    expect(await stage.at(kind, {}, T + 5 * MINUTE_MS)).toEqual([])
  })

  it('counts what meets the conditions of its rule, of its workspace alone', async () => {
    await stage.throwErrors([
      { atMs: T, count: 15, environment: 'production' },
      { atMs: T, count: 15, environment: 'staging' },
      { atMs: T, count: 100, of: stage.other, variant: 'variant-3' },
    ])
    const meets = async (rule: Partial<AlertRule>) => (await stage.at(kind, rule, T + 5 * MINUTE_MS)).length
    const few = { times: 5, atLeast: 15 }
    expect(await meets({})).toBe(1)
    expect(await meets({ environments: ['staging'] })).toBe(0)
    expect(await meets({ environments: ['staging'], spiking: few })).toBe(1)
    expect(await meets({ environments: ['test'], spiking: few })).toBe(0)
    for (const [field, value] of Object.entries({
      ...{ surfaces: SHOP, services: 'shop', releases: '1.0', types: 'EmptyCart' },
    })) {
      expect([field, await meets({ [field]: ['else', value] }), await meets({ [field]: ['else'] })]).toEqual([
        field,
        1,
        0,
      ])
    }
  })

  it('reads a week at every fifth minute in two queries', async () => {
    await stage.throwErrors([
      { atMs: T + HOUR_MS, count: 25 },
      { atMs: T + DAY_MS + HOUR_MS, count: 60 },
      { atMs: T + 3 * DAY_MS + HOUR_MS + 5 * MINUTE_MS, count: 301 },
    ])
    const week = { fromMs: T, toMs: T + 7 * DAY_MS, stepMs: 5 * MINUTE_MS }
    const readings = await stage.measure(kind, {}, week)
    expect(minutesAfter(readings)).toEqual([65, 3 * 1_440 + 70])
    expect(readings.map(({ measured }) => measured.threshold)).toEqual([20, 300])
  })
})

describe('finding.spreading', () => {
  const kind = 'finding.spreading'
  const rule = { spreading: { people: 2, minutes: 30 } }
  const identify = (session: string, identifier: string, of = stage.workspaceId, atMs = T) =>
    stage.insert('session_identities', [
      { workspace_id: of, surface_id: SHOP, session_id: session, received_at: timeOf(atMs), identifier },
    ])

  it('counts people who are identified, and not sessions, in its minutes', async () => {
    await identify('s1', 'ada')
    await identify('s2', 'ada')
    await identify('s3', 'bob', stage.workspaceId, T - DAY_MS)
    await identify('s3', 'grace', stage.workspaceId, T - 1_000)
    await identify('s4', 'eve', stage.other)
    await stage.throwErrors([
      ...[
        { atMs: T, session: 's1' },
        { atMs: T, session: 's2' },
        { atMs: T, session: 'unknown' },
        { atMs: T, session: 's4' },
      ],
      { atMs: T + 20 * MINUTE_MS, session: 's3' },
      { atMs: T + 20 * MINUTE_MS, session: 's4', of: stage.other },
    ])
    const read = await stage.measure(kind, rule, { fromMs: T, toMs: T + HOUR_MS, stepMs: MINUTE_MS })
    expect(minutesAfter(read)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30])
    expect(read[0]).toMatchObject({
      subject: { findingId: FINDING },
      measured: { what: 'people', value: 2, threshold: 2, minutes: 30 },
    })
    expect(await stage.at(kind, { ...rule, environments: ['staging'] }, T + 25 * MINUTE_MS)).toEqual([])
    expect(await stage.at(kind, { ...rule, types: ['EmptyCart'] }, T + 25 * MINUTE_MS)).toHaveLength(1)
  })

  it('counts a person once in a day that is read at every fifth minute', async () => {
    await identify('s1', 'ada')
    await identify('s2', 'bob')
    await stage.throwErrors([
      { atMs: T, session: 's1' },
      { atMs: T + HOUR_MS, session: 's1' },
      { atMs: T + 7 * MINUTE_MS, session: 's2' },
    ])
    const read = await stage.measure(kind, rule, { fromMs: T, toMs: T + DAY_MS, stepMs: 5 * MINUTE_MS })
    expect(minutesAfter(read)).toEqual([10, 15, 20, 25, 30])
    expect(read.every(({ measured }) => measured.value === 2)).toBe(true)
  })
})
