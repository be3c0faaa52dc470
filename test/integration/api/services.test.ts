import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serviceDetailsSchema, servicesPageSchema } from '../../../schemas/http/services.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createSpanStatsBatch } from '../../../workers/span-stats/stats-batch.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { startPools, startTestPool } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const database = await createTestDatabase(services.clickhouseUrl, `services_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)

/** An hour of which all spans have arrived. */
const HOUR = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 2 * 3_600_000
const KINDS = { server: 2, client: 3, internal: 1, consumer: 5 } as const

let seed = 7
const random = () => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed / 2_147_483_647
}

interface Sent {
  readonly service: string
  readonly version: string
  readonly kind: keyof typeof KINDS
  readonly name: string
  readonly atMs: number
}

function exportOf({ service, version, kind, name, atMs }: Sent, spans: number): Buffer {
  const text = (key: string, value: string) => ({ key, value: { stringValue: value } })
  const all = Array.from({ length: spans }, (_, i) => {
    const end = BigInt(Math.floor(atMs + random() * 3_600_000)) * 1_000_000n
    // From a microsecond to a minute, most of them short.
    const duration = BigInt(Math.floor(10 ** (3 + 7 * random() ** 2)))
    return {
      ...{ traceId: (i + 1).toString(16).padStart(32, '0'), spanId: (i + 1).toString(16).padStart(16, '0') },
      ...{ name: `${name} ${i % 3}`, kind: KINDS[kind], status: { code: i % 10 === 0 ? 2 : 0 } },
      ...{ startTimeUnixNano: String(end - duration), endTimeUnixNano: String(end) },
    }
  })
  const attributes = [
    ...[text('service.name', service), text('service.version', version)],
    text('deployment.environment.name', version === '2' ? 'staging' : 'production'),
  ]
  return Buffer.from(JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans: [{ spans: all }] }] }))
}

const SENT: readonly (Sent & { readonly spans: number })[] = [
  { service: 'cart', version: '1', kind: 'server', name: 'GET', atMs: HOUR, spans: 900 },
  { service: 'cart', version: '2', kind: 'server', name: 'GET', atMs: HOUR, spans: 300 },
  { service: 'cart', version: '1', kind: 'client', name: 'SELECT', atMs: HOUR, spans: 2_000 },
  { service: 'cart', version: '1', kind: 'server', name: 'GET', atMs: HOUR - DAY_MS, spans: 400 },
  { service: 'mail', version: '1', kind: 'consumer', name: 'send', atMs: HOUR, spans: 50 },
  { service: 'page', version: '1', kind: 'internal', name: 'click', atMs: HOUR, spans: 70 },
]

describe('services', () => {
  let api: TestApi
  let token: string

  beforeAll(async () => {
    await letters.redis.flushdb()
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    token = await signToken()
    api = await startApi({ ...services, redisUrl }, database.name)
    const addresses = { ...services, redisUrl }
    const pools = startPools(['traces'], addresses, database.name)
    const plan = { queue: 'span-stats', kind: undefined, createRows: createSpanStatsBatch } as const
    const stats = startTestPool(plan, addresses, database.name)
    for (const [i, { spans, ...sent }] of SENT.entries()) {
      await letters.enqueue('traces', `job ${i}`, [
        traceFrame({ workspaceId: 'ws_1', surfaceId: 'srf_1' }, exportOf(sent, spans)),
      ])
    }
    await letters.enqueue('traces', 'job of another', [
      traceFrame({ workspaceId: 'ws_2', surfaceId: 'srf_2' }, exportOf({ ...SENT[0], service: 'secret' } as Sent, 10)),
    ])
    const all = SENT.reduce((sum, { spans }) => sum + spans, 10)
    await until('the spans are counted', async () => {
      const [row] = await database.rows<{ n: string }>('SELECT sum(spans) AS n FROM span_stats')
      return Number(row?.n) === all
    })
    await Promise.all([pools.stop(), stats.close()])
  })
  afterAll(async () => {
    await api?.stop()
    await letters.close()
    await clickhouse.close()
    await database.drop()
  })

  const range = `from=${new Date(HOUR).toISOString()}&to=${new Date(HOUR + 3_600_000).toISOString()}`
  const read = async (path: string) => {
    const { status, body } = await call(api.baseUrl, `GET ${path}`, { bearer: token })
    expect(status, JSON.stringify(body)).toBe(200)
    return body
  }

  /** Rates as ClickHouse computes them of all spans. */
  async function exact(condition: string) {
    const of = `FROM spans WHERE workspace_id = 'ws_1' AND ${condition}`
    const hour = `AND end_time_unix_nano >= ${HOUR}000000 AND end_time_unix_nano < ${HOUR + 3_600_000}000000`
    const [row] = await database.rows<{ n: string; errors: string; q: number[] }>(`
      SELECT count() AS n, countIf(status_code = 2) AS errors,
        quantilesExact(0.5, 0.95, 0.99)(toFloat64(end_time_unix_nano - start_time_unix_nano) / 1e6) AS q ${of} ${hour}`)
    const [average] = await database.rows<{ a: number }>(
      `SELECT avg(toFloat64(end_time_unix_nano - start_time_unix_nano)) / 1e6 AS a ${of} ${hour}`,
    )
    return { spans: Number(row?.n), errors: Number(row?.errors), q: row?.q ?? [], average: average?.a ?? 0 }
  }

  async function expectExact(
    found: { spans: number; errors: number; durationMs: Record<'average' | 'p50' | 'p95' | 'p99', number> | null },
    condition: string,
  ) {
    const { spans, errors, q, average } = await exact(condition)
    expect([found.spans, found.errors]).toEqual([spans, errors])
    const { average: ofAverage = 0, p50 = 0, p95 = 0, p99 = 0 } = found.durationMs ?? {}
    expect(Math.abs(ofAverage / average - 1)).toBeLessThan(0.001)
    for (const [i, estimate] of [p50, p95, p99].entries()) {
      expect(Math.abs(estimate / (q[i] as number) - 1)).toBeLessThan(0.012)
    }
  }

  it('are listed with the rates of their entries, or of all spans without such', async () => {
    const { services: found, stepSeconds, from, to } = servicesPageSchema.parse(await read(`/v3/services?${range}`))
    expect(found.map(({ name, counts, spans }) => [name, counts, spans])).toEqual([
      ['cart', 'entries', 1_200],
      ['page', 'all', 70],
      ['mail', 'entries', 50],
    ])
    const [cart] = found
    if (cart === undefined) throw new Error('there is no cart')
    await expectExact(cart, `service_name = 'cart' AND kind = 2`)
    expect(cart.dayBefore.spans).toBe(400)
    const [{ first = 0 } = {}] = await database.rows<{ first: number }>(`
      SELECT toUInt32(intDiv(min(end_time_unix_nano), 60000000000) * 60) AS first FROM spans
      WHERE workspace_id = 'ws_1' AND service_name = 'cart' AND origin LIKE '"2"%'`)
    const [{ n: before = '' } = {}] = await database.rows<{ n: string }>(`
      SELECT count() AS n FROM spans WHERE workspace_id = 'ws_1' AND service_name = 'cart' AND kind = 2
        AND end_time_unix_nano >= ${(first - 3_600) * 1e9} AND end_time_unix_nano < ${first * 1e9}`)
    expect(cart.lastRelease).toMatchObject({ version: '2', at: new Date(first * 1_000).toISOString() })
    expect(cart.lastRelease?.before.spans).toBe(Number(before))
    expect(found.at(-1)?.lastRelease).toBeNull()
    expect([stepSeconds, from, to]).toEqual([
      60,
      new Date(HOUR).toISOString(),
      new Date(HOUR + 3_600_000).toISOString(),
    ])
    const minutes = await database.rows<{ n: string; errors: string }>(`
      SELECT count() AS n, countIf(status_code = 2) AS errors FROM spans
      WHERE workspace_id = 'ws_1' AND service_name = 'cart' AND kind = 2 AND end_time_unix_nano >= ${HOUR}000000
      GROUP BY intDiv(end_time_unix_nano, 60000000000) AS minute
      ORDER BY minute WITH FILL FROM ${HOUR / 60_000} TO ${HOUR / 60_000 + 60}`)
    expect(cart.steps.spans).toEqual(minutes.map(({ n }) => Number(n)))
    expect(cart.steps.errors).toEqual(minutes.map(({ errors }) => Number(errors)))
    expect(cart.steps.p95Ms.filter(value => value === null).length).toBe(
      minutes.filter(({ n }) => Number(n) === 0).length,
    )
  })

  it('have pages, a surface and an environment', async () => {
    const first = servicesPageSchema.parse(await read(`/v3/services?${range}&limit=2`))
    expect(first.services.map(({ name }) => name)).toEqual(['cart', 'page'])
    const second = servicesPageSchema.parse(await read(`/v3/services?${range}&limit=2&cursor=${first.nextCursor}`))
    expect([second.services.map(({ name }) => name), second.nextCursor]).toEqual([['mail'], null])
    const staging = servicesPageSchema.parse(await read(`/v3/services?${range}&environment=staging`))
    expect(staging.services.map(({ name, spans }) => [name, spans])).toEqual([['cart', 300]])
    const nothing = servicesPageSchema.parse(await read(`/v3/services?${range}&surface=srf_2`))
    expect(nothing.services).toEqual([])
  })

  it('are read with their operations and versions', async () => {
    const cart = serviceDetailsSchema.parse(await read(`/v3/services/cart?${range}`))
    expect(cart.spans).toBe(1_200)
    const operations = new Map(cart.operations.map(one => [`${one.kind} ${one.name}`, one]))
    expect([...operations.keys()].sort()).toEqual(
      ['client SELECT', 'server GET'].flatMap(name => [0, 1, 2].map(i => `${name} ${i}`)),
    )
    for (const [key, operation] of operations) {
      const [kind, name] = [key.startsWith('server') ? 2 : 3, operation.name]
      await expectExact(operation, `service_name = 'cart' AND kind = ${kind} AND name = '${name}'`)
      const [slowest] = await database.rows<{ traceId: string; ms: number }>(`
        SELECT lower(hex(trace_id)) AS traceId, (end_time_unix_nano - start_time_unix_nano) / 1e6 AS ms FROM spans
        WHERE service_name = 'cart' AND kind = ${kind} AND name = '${name}' AND end_time_unix_nano >= ${HOUR}000000
        ORDER BY ms DESC LIMIT 1`)
      expect(operation.slowest.traceId).toBe(slowest?.traceId)
    }
    expect(cart.versions.map(({ version, environment, spans }) => [version, environment, spans]).sort()).toEqual([
      ['1', 'production', 900],
      ['2', 'staging', 300],
    ])
  })

  it('are not found without spans in the range, and a range must be of 31 days at most', async () => {
    const status = async (path: string) => (await call(api.baseUrl, `GET ${path}`, { bearer: token })).status
    expect(await status(`/v3/services/secret?${range}`)).toBe(404)
    expect(await status(`/v3/services/cart?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z`)).toBe(404)
    expect(await status('/v3/services?from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z')).toBe(400)
    expect(await status('/v3/services?from=2026-03-01T00:00:00Z&to=2026-01-01T00:00:00Z')).toBe(400)
  })
})
