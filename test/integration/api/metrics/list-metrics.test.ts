import { describe, expect, it } from 'vitest'
import { type MetricsPage, metricsPageSchema } from '../../../../schemas/http/metrics.ts'
import { DAY_S } from '../../../../schemas/units.ts'
import { ask, askSeries, deltas, gauge, histogram, iso, otherToken, store, sum } from './fixture.ts'

const RANGE = { from: iso(0), to: iso(3_600) }
const points = [{ at: 60, value: 1 }]

async function list(parameters: Record<string, string> = {}): Promise<MetricsPage> {
  const { status, body } = await ask('/v3/metrics', { ...RANGE, ...parameters })
  expect({ status, body }).toMatchObject({ status: 200 })
  return metricsPageSchema.parse(body)
}

/** Follows the cursors of a list. */
async function listAll(parameters: Record<string, string>): Promise<string[]> {
  const names: string[] = []
  let cursor: string | null = null
  do {
    const page = await list({ ...parameters, ...(cursor !== null && { cursor }) })
    names.push(...page.metrics.map(({ name }) => name))
    cursor = page.nextCursor
  } while (cursor !== null)
  return names
}

describe('GET /v3/metrics', () => {
  it('lists metrics by name with their types, units and labels', async () => {
    const described = sum('kinds.b', [{ at: 60, value: 1, labels: { 'http.route': '/cart' } }], { unit: 's' })
    await store([
      { ...gauge('kinds.a', [{ at: 60, value: 1, labels: { host: 'x' } }], 'By'), description: 'Memory in use' },
      { ...described, description: 'Time' },
      gauge('kinds.b', [{ at: 30, value: 1, labels: { pod: 'y' } }], 'ms'),
      histogram('kinds.c', [{ at: 60, counts: [1, 0], bounds: [1] }]),
      deltas('kinds.d', points),
    ])
    const { metrics, nextCursor } = await list({ prefix: 'kinds.' })
    expect(nextCursor).toBeNull()
    expect(metrics).toEqual([
      {
        name: 'kinds.a',
        description: 'Memory in use',
        kinds: [{ type: 'gauge', unit: 'By' }],
        labels: ['host'],
        lastPointAt: iso(60).replace('000Z', '000000000Z'),
      },
      {
        name: 'kinds.b',
        description: 'Time',
        kinds: [
          { type: 'sum', unit: 's', temporality: 'cumulative', isMonotonic: true },
          { type: 'gauge', unit: 'ms' },
        ],
        labels: ['http.route', 'pod'],
        lastPointAt: expect.stringMatching(/Z$/),
      },
      expect.objectContaining({
        name: 'kinds.c',
        kinds: [{ type: 'histogram', unit: '', temporality: 'cumulative' }],
      }),
      expect.objectContaining({
        name: 'kinds.d',
        kinds: [{ type: 'sum', unit: '', temporality: 'delta', isMonotonic: true }],
        labels: [],
      }),
    ])
  })

  it('lists every name once, page by page, also names with the same beginning', async () => {
    const long = 'pages.'.padEnd(200, 'ä')
    const names = ['pages.a', 'pages.b/c d?', 'pages.{"x":1}\n', `${long}1`, `${long}2`, `${long}3`]
    await store(names.map(name => gauge(name, points)))
    const found = await listAll({ prefix: 'pages.', limit: '1' })
    expect([...found].sort()).toEqual([...names].sort())
    expect(found.slice(0, 3)).toEqual(names.slice(0, 3))
    expect(await listAll({ prefix: 'pages.', limit: '4' })).toEqual(found)
    for (const name of names) expect((await askSeries(name)).status, name).toBe(200)
  })

  it('lists the metrics of a service, a surface and a range', async () => {
    await store([gauge('where.a', points)], { service: 'shop' })
    await store([gauge('where.b', points)], { service: '', surfaceId: 'srf_2' })
    await store([gauge('where.c', [{ at: 3_600, value: 1 }])])
    const names = async (parameters: Record<string, string>) =>
      (await list({ prefix: 'where.', ...parameters })).metrics.map(({ name }) => name)
    expect(await names({})).toEqual(['where.a', 'where.b'])
    expect(await names({ service: 'shop' })).toEqual(['where.a'])
    expect(await names({ service: '' })).toEqual(['where.b'])
    expect(await names({ surface: 'srf_2' })).toEqual(['where.b'])
    expect(await names({ from: iso(61), to: iso(3_601) })).toEqual(['where.c'])
    expect(await names({ prefix: 'where.%' })).toEqual([])
  })

  it('shows nothing of another workspace', async () => {
    await store([gauge('theirs', points)], { workspaceId: 'ws_2' })
    expect((await list({ prefix: 'theirs' })).metrics).toEqual([])
    const { body } = await ask('/v3/metrics', RANGE, otherToken)
    expect(metricsPageSchema.parse(body).metrics.map(({ name }) => name)).toEqual(['theirs'])
  })

  it('refuses a cursor of a list with other filters', async () => {
    await store(['cursor.a', 'cursor.b'].map(name => gauge(name, points)))
    const { nextCursor } = await list({ prefix: 'cursor.', limit: '1' })
    const answer = await ask('/v3/metrics', { ...RANGE, prefix: 'other.', cursor: nextCursor ?? '' })
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringMatching(/^cursor is for a list/) } })
  })

  it.each([
    [{ from: iso(60), to: iso(60) }, /^from must be before "to"/],
    [{ from: iso(0), to: iso(32 * DAY_S) }, /^from must be at most 31 days before "to"/],
    [{ from: 'yesterday' }, /^from must be an RFC 3339 time/],
    [{ prefix: '' }, /^prefix must not be empty/],
  ])('refuses %j', async (parameters, message) => {
    expect(await ask('/v3/metrics', parameters)).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringMatching(message), service: 'api-analytics' },
    })
  })
})
