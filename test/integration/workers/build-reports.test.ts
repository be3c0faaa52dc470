import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BuildReport } from '../../../schemas/http/releases/schemas.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/14`

describe('a build report', () => {
  let redis: Redis
  let edge: TestEdge
  let pools: TestPools
  let database: TestDatabase
  let secretKey: string
  let releases = 0

  beforeAll(async () => {
    redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
    await redis.flushdb()
    secretKey = await issueKey(createDirectory(redis), { kind: 'secret', scopes: ['release:write'] })
    database = await createTestDatabase(services.clickhouseUrl, `build_reports_${process.pid}`)
    edge = await startEdge(redisUrl)
    pools = startPools(['build-reports'], { ...services, redisUrl }, database.name)
  })
  afterAll(async () => {
    await pools?.stop()
    await edge?.stop()
    await database?.drop()
    redis?.disconnect()
  })

  const newSlug = () => `rel_${process.pid}x${++releases}`

  async function report(slug: string, body: object) {
    const response = await fetch(`${edge.baseUrl}/v3/releases/${encodeURIComponent(slug)}/telemetry`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as unknown }
  }

  function stored(slug: string, count = 1) {
    return until(`${count} reports are stored`, async () => {
      const rows = await database.rows<Record<string, unknown>>(
        `SELECT * EXCEPT received_at, toUnixTimestamp64Milli(received_at) AS received_at_ms
         FROM build_reports WHERE release_slug = '${slug}' ORDER BY received_at, total
         SETTINGS output_format_json_quote_64bit_integers = 1`,
      )
      return rows.length >= count ? rows : undefined
    })
  }

  const whole: Required<BuildReport> = {
    discover: 1,
    createRelease: 20,
    upload: 300,
    cleanup: 4_000,
    total: 50_000,
    fileCount: 600_000,
    totalBytes: Number.MAX_SAFE_INTEGER,
    preflight: 7,
    result: 'client_maps_unmapped',
  }

  it('is stored with every field, even for a release that is not registered yet', async () => {
    const slug = newSlug()
    const before = Date.now()
    expect(await report(slug, whole)).toEqual({ status: 200, body: { ok: true } })
    const [row] = await stored(slug)
    expect(row).toEqual({
      workspace_id: 'ws_1',
      surface_id: 'srf_1',
      release_slug: slug,
      result: 'client_maps_unmapped',
      discover: '1',
      create_release: '20',
      upload: '300',
      cleanup: '4000',
      total: '50000',
      file_count: '600000',
      total_bytes: '9007199254740991',
      preflight: '7',
      received_at_ms: expect.any(String),
    })
    expect(Number(row?.received_at_ms)).toBeGreaterThanOrEqual(before)
    expect(Number(row?.received_at_ms)).toBeLessThanOrEqual(Date.now())
  })

  it('distinguishes an absent field from 0', async () => {
    const slug = newSlug()
    await report(slug, { fileCount: 0, cleanup: 0, somethingNewer: 1 })
    const [row] = await stored(slug)
    const nothing = { discover: null, create_release: null, upload: null, total: null, preflight: null }
    expect(row).toMatchObject({ file_count: '0', cleanup: '0', total_bytes: null, result: '', ...nothing })
    await report(slug, { result: 'api_key_rejected' })
    expect((await stored(slug, 2))[1]).toMatchObject({ result: 'api_key_rejected', file_count: null, cleanup: null })
  })

  it('is stored once when it is one of many at once', async () => {
    const slug = newSlug()
    const answers = await Promise.all(Array.from({ length: 200 }, (_, total) => report(slug, { total })))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    const rows = await stored(slug, 200)
    expect(rows.map(row => Number(row.total)).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i))
  })

  it('leaves nothing in Redis once it is stored', async () => {
    const slug = newSlug()
    await report(slug, whole)
    await stored(slug)
    const { payloadPrefix, flow } = queueKeys('build-reports')
    await until('the payload is gone', async () => (await redis.keys(`${payloadPrefix}*`)).length === 0)
    const { acceptedPayloads, donePayloads } = await redis.hgetall(flow)
    expect(donePayloads).toBe(acceptedPayloads)
  })
})
