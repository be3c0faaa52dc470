import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { MeasuredStage, minutesAfter, SHOP, T, timeOf } from '../../support/alerts/measured-stage.ts'

const stage = await MeasuredStage.create('measured_surfaces')

beforeEach(() => stage.renew())
afterAll(() => stage.drop())

describe('surface.silent', () => {
  const kind = 'surface.silent'
  const rule = { silent: { minutes: 10 } }
  const hour = { fromMs: T, toMs: T + HOUR_MS, stepMs: 5 * MINUTE_MS }

  it('holds while a surface was sent nothing for its minutes, in gaps and at the end', async () => {
    await stage.sendTo(SHOP, T + 10_000, T + 4 * MINUTE_MS, T + 30 * MINUTE_MS)
    const read = await stage.measure(kind, rule, hour)
    expect(minutesAfter(read)).toEqual([15, 20, 25, 30, 45, 50, 55, 60])
    expect(read[0]).toMatchObject({ subject: { surfaceId: SHOP }, measured: { value: 0, minutes: 10 } })
    expect(minutesAfter(await stage.at(kind, rule, T + 14 * MINUTE_MS))).toEqual([])
    expect(minutesAfter(await stage.at(kind, rule, T + 15 * MINUTE_MS))).toEqual([15])
    expect(minutesAfter(await stage.at(kind, rule, T + 31 * MINUTE_MS))).toEqual([])
  })

  it('holds for one that was sent something long before, and for no new or deleted one', async () => {
    stage.surfaces = [SHOP, 'srf_new']
    await stage.countRequests(SHOP, T - 5 * DAY_MS, 'accepted')
    await stage.countRequests('srf_deleted', T - 5 * DAY_MS, 'accepted')
    await stage.countRequests('srf_new', T - 5 * DAY_MS, 'refused-401')
    expect((await stage.at(kind, rule, T)).map(({ subject }) => subject.surfaceId)).toEqual([SHOP])
    expect(await stage.at(kind, { ...rule, surfaces: ['srf_new'] }, T)).toEqual([])
  })

  it('does not hold while something of the surface waits to be stored', async () => {
    await stage.sendTo(SHOP, T - HOUR_MS)
    stage.settled = new Map([[SHOP, T - MINUTE_MS]])
    expect(await stage.at(kind, rule, T)).toEqual([])
    stage.settled = new Map([[SHOP, T]])
    expect(await stage.at(kind, rule, T)).toHaveLength(1)
  })
})

describe('pipeline', () => {
  it('pipeline.dead_letters counts new letters of fifteen minutes by surface', async () => {
    const letter = (atMs: number, more: object = {}) => ({
      ...{ workspace_id: stage.workspaceId, surface_id: SHOP, queue: 'traces', job_id: 'j', job_index: 0, attempt: 0 },
      ...{ received_at: timeOf(atMs - HOUR_MS), refused_at: timeOf(atMs), indexed_at: timeOf(atMs), ...more },
    })
    await stage.insert('dead_letters', [
      letter(T),
      letter(T + MINUTE_MS, { job_index: 1 }),
      // A replay that is refused again, and another workspace.
      letter(T + 30 * MINUTE_MS, { attempt: 1 }),
      letter(T + 30 * MINUTE_MS, { workspace_id: stage.other }),
    ])
    const read = await stage.measure(
      'pipeline.dead_letters',
      {},
      { fromMs: T, toMs: T + HOUR_MS, stepMs: 5 * MINUTE_MS },
    )
    expect(minutesAfter(read)).toEqual([5, 10, 15])
    expect(read.map(({ measured }) => measured.value)).toEqual([2, 2, 2])
    expect(read[0]?.subject).toEqual({ surfaceId: SHOP })
    expect((await stage.at('pipeline.dead_letters', {}, T + 16 * MINUTE_MS))[0]?.measured.value).toBe(1)
  })

  it('pipeline.quota counts refusals over a quota of the hour', async () => {
    await stage.countRequests(SHOP, T, 'over-quota', 7)
    await stage.countRequests(SHOP, T, 'refused-429', 50)
    await stage.countRequests(SHOP, T + 5 * HOUR_MS, 'over-quota', 7, stage.other)
    const read = await stage.measure(
      'pipeline.quota',
      {},
      { fromMs: T - HOUR_MS, toMs: T + 8 * HOUR_MS, stepMs: 30 * MINUTE_MS },
    )
    expect(minutesAfter(read)).toEqual([30, 60])
    expect(read[0]).toMatchObject({ subject: { surfaceId: SHOP }, measured: { value: 7, threshold: 1, minutes: 60 } })
  })

  it('pipeline.late holds from five minutes after the arrival until it is stored', async () => {
    const logged = (arrivedMs: number, storedMs: number, of = stage.workspaceId) => ({
      ...{ workspace_id: of, surface_id: SHOP, received_at: timeOf(arrivedMs), stored_at: timeOf(storedMs) },
      ...{ job_id: 'j', signal: 'logs', payloads: 1 },
    })
    await stage.insert('ingest_log', [
      logged(T, T + 9 * MINUTE_MS),
      logged(T, T + 30 * MINUTE_MS, stage.other),
      logged(T + 20 * MINUTE_MS, T + 24 * MINUTE_MS),
    ])
    const read = await stage.measure('pipeline.late', {}, { fromMs: T, toMs: T + HOUR_MS, stepMs: MINUTE_MS })
    expect(minutesAfter(read)).toEqual([6, 7, 8])
    expect(read.map(({ measured }) => measured.value)).toEqual([360, 420, 480])
  })

  it('pipeline.late holds now for what is not stored', async () => {
    stage.settled = new Map([
      [SHOP, T - 5 * MINUTE_MS],
      ['srf_late', T - 5 * MINUTE_MS - 1_000],
    ])
    expect(await stage.at('pipeline.late', {}, T)).toMatchObject([
      { subject: { surfaceId: 'srf_late' }, measured: { value: 301, threshold: 300, unit: 's', minutes: 5 } },
    ])
  })
})
