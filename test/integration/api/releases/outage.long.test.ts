import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../../shared/object-store/types.ts'
import { countAwakeMs } from '../../../support/count-awake-ms.ts'
import { createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../../support/services/api.ts'
import { type Services, s3Settings, startServices } from '../../../support/services/services.ts'
import { until } from '../../../support/until.ts'
import { completeRelease, manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'

async function request(baseUrl: string, path: string, token: string) {
  const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` } })
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as unknown,
  }
}

describe('releases while a server is unavailable', () => {
  let services: Services
  let redis: Redis
  let objects: ObjectStore
  let api: TestApi
  let token: string

  beforeAll(async () => {
    services = await startServices()
    redis = new Redis(services.redisUrl, { maxRetriesPerRequest: null })
    redis.on('error', () => undefined)
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    const client = await createDatabase(services.clickhouseUrl, 'penstock')
    await client.close()
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    const store = createReleaseStore(redis)
    const release = await registerRelease(store, { slug: 'rel_a' })
    await completeRelease({ store, objects }, release, { sequence: 1, files: [manifestFile(1)] })
    api = await startApi(services, 'penstock', { ...s3Settings(services.s3), API_QUERY_TIMEOUT_MS: '1500' })
    token = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    objects?.close()
    redis?.disconnect()
    await services?.stop()
  })

  it.each([
    ['ClickHouse', 'clickhouse', ['/v3/releases/rel_a']],
    ['the object store', 's3Server', ['/v3/releases/rel_a']],
    ['Redis', 'redis', ['/v3/releases/rel_a', '/v3/releases']],
  ] as const)('%s killed: returns 503 with Retry-After, and 200 after the restart', async (_name, which, paths) => {
    const ask = (path: string) => request(api.baseUrl, path, token)
    const service = services[which]
    expect((await ask('/v3/releases')).status).toBe(200)
    await service.kill9()
    for (const path of paths) {
      const awakeMs = countAwakeMs()
      expect(await ask(path)).toEqual({
        status: 503,
        retryAfter: '5',
        body: { code: 'INGEST_INFRA_UNAVAILABLE', message: expect.any(String), service: 'frontier-buildtime' },
      })
      expect(awakeMs()).toBeLessThan(3_000)
    }
    if (which !== 'redis') expect((await ask('/v3/releases')).status).toBe(200)
    await service.restart()
    for (const path of paths) await until(`${path} is read again`, async () => (await ask(path)).status === 200)
  })

  it('object store silent: returns 503 after the deadline', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const settings = {
      ...s3Settings(services.s3),
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      API_QUERY_TIMEOUT_MS: '1500',
    }
    const waiting = await startApi(services, 'penstock', settings)
    try {
      const awakeMs = countAwakeMs()
      const answer = await request(waiting.baseUrl, '/v3/releases/rel_a', token)
      expect(answer).toMatchObject({ status: 503, body: { code: 'INGEST_INFRA_UNAVAILABLE' } })
      expect(awakeMs()).toBeLessThan(2_500)
    } finally {
      await waiting.stop()
      silent.close()
    }
  })
})
