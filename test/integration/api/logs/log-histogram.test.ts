import { beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import { ask, between, histogram, nanos, store } from './fixture.ts'

const start = Math.floor(Date.now() / DAY_MS) * DAY_MS - 2 * DAY_MS
const NONE = [0, 0, 0, 0, 0]

describe('GET /v3/logs/histogram', () => {
  beforeAll(() =>
    store(
      [0, 59_999, 60_000, 240_000, 299_999].flatMap((ms, i) => [
        { timeUnixNano: nanos(start + ms) + 999_999n, severityNumber: [0, 1, 8, 13, 24][i] ?? 0 },
        { timeUnixNano: nanos(start + ms), severityNumber: 255, workspaceId: i === 4 ? 'ws_1' : 'ws_2' },
      ]),
    ),
  )

  it('counts records by severity and step, with zeros for steps without any', async () => {
    expect(await histogram(`${between(start, start + 5 * MINUTE_MS)}&step=60`)).toEqual({
      from: new Date(start).toISOString(),
      to: new Date(start + 5 * MINUTE_MS).toISOString(),
      startsAt: new Date(start).toISOString(),
      stepSeconds: 60,
      total: 6,
      counts: {
        UNSPECIFIED: [1, 0, 0, 0, 0],
        TRACE: [1, 0, 0, 0, 0],
        DEBUG: [0, 1, 0, 0, 0],
        INFO: NONE,
        WARN: [0, 0, 0, 0, 1],
        ERROR: NONE,
        FATAL: [0, 0, 0, 0, 2],
      },
    })
  })

  it('counts only records of the time, in steps that begin at multiples of their length', async () => {
    const { startsAt, total, counts } = await histogram(`${between(start + 30_000, start + 100_000)}&step=60`)
    expect({ startsAt, total }).toEqual({ startsAt: new Date(start).toISOString(), total: 2 })
    expect([counts.TRACE, counts.DEBUG, counts.UNSPECIFIED]).toEqual([
      [1, 0],
      [0, 1],
      [0, 0],
    ])
  })

  it('chooses about a hundred steps', async () => {
    const { stepSeconds, counts } = await histogram(between(start, start + DAY_MS))
    expect({ stepSeconds, steps: counts.INFO.length }).toEqual({ stepSeconds: 900, steps: 96 })
  })

  it.each([
    [DAY_MS, 1, 'step must be at least 217 for this time, because there are at most 400 steps'],
    [DAY_MS, 0, 'step must be a whole number from 1 to 31536000'],
  ])('refuses the time %i with the step %i', async (time, step, message) => {
    expect(await ask(`/histogram?${between(start, start + time)}&step=${step}`)).toEqual({
      status: 400,
      body: { code: 'REQUEST_INVALID', message, service: 'api-analytics' },
    })
  })
})
