import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { releaseAnswerSchema, releasesPageSchema } from '../../../schemas/http/releases/schemas.ts'
import type { Release } from '../../../schemas/records/directory.ts'
import type { ManifestFile } from '../../../schemas/records/manifest.ts'
import { createReleaseStore, type ReleaseStore } from '../../../shared/directory/release-store.ts'
import { createObjectStore, type ObjectStore } from '../../../shared/object-store/object-store.ts'
import { createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { type ServiceAddresses, type Services, startServices } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'
import { at, insertRows } from '../../support/workspaces/session-rows.ts'
import { completeRelease, manifestFile, registerRelease } from '../../support/workspaces/stored-releases.ts'

const DATABASE = `api_releases_${process.pid}`
/** Some hours ago: retention takes what is older than a month. */
const NOW = Date.now() - 4 * 3_600_000
const slugOf = (name: string) => `rel_${process.pid}${name}`

const s3Settings = ({ s3 }: ServiceAddresses) => ({
  S3_ENDPOINT: s3.endpoint,
  S3_BUCKET: s3.bucket,
  AWS_ACCESS_KEY_ID: s3.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
})

async function request(baseUrl: string, path: string, token: string) {
  const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` } })
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as unknown,
  }
}

describe('releases', () => {
  const services = inject('services')
  let redis: Redis
  let store: ReleaseStore
  let objects: ObjectStore
  let client: ClickHouseClient
  let api: TestApi
  let token: string

  beforeAll(async () => {
    redis = new Redis(services.redisUrl)
    store = createReleaseStore(redis)
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    const narrow = { id: 'ws_3', slug: 'narrow', userId: 'user_3', permissions: ['org:findings:read'] } as const
    await putWorkspace(services.redisUrl, narrow)
    await redis.del('penstock:workspace:ws_1:releases', 'penstock:workspace:ws_2:releases')
    api = await startApi(services, DATABASE, s3Settings(services))
    token = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    objects?.close()
    redis?.disconnect()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const ask = (path: string, bearer = token) => request(api.baseUrl, path, bearer)

  async function askRelease(slug: string, query = '') {
    const { status, body } = await ask(`/v3/releases/${slug}${query}`)
    expect(status).toBe(200)
    expect(releaseAnswerSchema.parse(body)).toEqual(body)
    return releaseAnswerSchema.parse(body).release
  }

  const complete = (release: Release, sequence: number, files: ManifestFile[]) =>
    completeRelease({ store, objects }, release, { sequence, files })

  describe('of a workspace', () => {
    /** Newest first; of one millisecond, by slug downwards. */
    const order = ['e', 'd9', 'd5', 'd4', 'd2', 'd1', 'c', 'b', 'a'].map(name => slugOf(`list${name}`))

    beforeAll(async () => {
      const times = new Map([...'abcde'].map((letter, i) => [letter, new Date(NOW + i).toISOString()]))
      for (const slug of [...order].sort(() => Math.random() - 0.5)) {
        const createdAt = times.get(slug.replace(/^.*list/, '')[0] ?? '') ?? ''
        await registerRelease(store, { slug, createdAt, workspaceId: 'ws_2', name: `v-${slug}`, surfaceId: 'srf_2' })
      }
      const [newest = ''] = order
      const files = [manifestFile(1), manifestFile(2), manifestFile(3)]
      await completeRelease({ store, objects }, { workspaceId: 'ws_2', slug: newest }, { sequence: 5, files })
    })

    it.each([1, 2, 3, 4, 8, 9, 50])('are listed newest first in pages of %i', async limit => {
      const bearer = await signToken({ sub: 'user_2', org: 'globex' })
      const seen: string[] = []
      let path = `/v3/releases?limit=${limit}`
      while (seen.length <= order.length) {
        const { status, body } = await ask(path, bearer)
        expect(status).toBe(200)
        const page = releasesPageSchema.parse(body)
        seen.push(...page.releases.map(release => release.slug))
        if (page.nextCursor === null) break
        expect(page.releases).toHaveLength(limit)
        path = `/v3/releases?limit=${limit}&cursor=${page.nextCursor}`
      }
      expect(seen).toEqual(order)
    })

    it('show what was registered, and the counters of the manifest that holds', async () => {
      const { body } = await ask('/v3/releases?limit=2', await signToken({ sub: 'user_2', org: 'globex' }))
      const [newest, next] = releasesPageSchema.parse(body).releases
      expect(newest).toEqual({
        slug: order[0],
        version: `v-${order[0]}`,
        surfaceId: 'srf_2',
        commit: null,
        createdAt: new Date(NOW + 4).toISOString(),
        sourceMapCount: 3,
        sourceFileCount: 7,
        completedAt: '2026-01-01T00:00:00.005Z',
      })
      expect(next).toMatchObject({ sourceMapCount: 0, sourceFileCount: 0, completedAt: null })
    })

    it('go on where a page ended, with what was registered since left out', async () => {
      const bearer = await signToken({ sub: 'user_2', org: 'globex' })
      const { nextCursor } = releasesPageSchema.parse((await ask('/v3/releases?limit=3', bearer)).body)
      const newer = { slug: slugOf('listz'), createdAt: new Date(NOW + 99).toISOString() }
      await registerRelease(store, { ...newer, workspaceId: 'ws_2' })
      const { body } = await ask(`/v3/releases?limit=2&cursor=${nextCursor}`, bearer)
      expect(releasesPageSchema.parse(body).releases.map(release => release.slug)).toEqual(order.slice(3, 5))
      await redis.zrem('penstock:workspace:ws_2:releases', newer.slug)
    })

    it('are read from their beginning when the cursor is not one', async () => {
      const forged = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url')
      const cursors = ['x', forged([1]), forged(['1', 'rel_a']), forged([-1, 'rel_a']), forged([1, 'a']), forged(null)]
      for (const cursor of cursors) {
        expect(await ask(`/v3/releases?cursor=${cursor}`)).toMatchObject({
          status: 400,
          body: { code: 'REQUEST_INVALID', message: expect.stringMatching(/^cursor/), service: 'api-analytics' },
        })
      }
      expect(await ask('/v3/releases?limit=0')).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID' } })
    })
  })

  it('one release tells its counters, builds, symbolication and manifest', async () => {
    const slug = slugOf('whole')
    const metadata = { branch: 'main', nested: { a: [1, null, 'ü'] } }
    const created = { commit: 'c0ffee', metadata, createdAt: new Date(NOW).toISOString() }
    const release = await registerRelease(store, { slug, name: '2.0.0+1', ...created })
    const files = [manifestFile(1, { path: 'a "[{]}\\ ü😀\u2028.map', debugId: '', chunkUrl: '' }), manifestFile(2)]
    const { completedAt } = await complete(release, 9, files)
    const owner = { workspace_id: 'ws_1', surface_id: 'srf_1', release_slug: slug }
    const reports = Array.from({ length: 12 }, (_, i) => ({ ...owner, received_at: at(NOW + i), total: i }))
    const full = { result: 'ok', discover: 1, create_release: 2, upload: 0, cleanup: 4, file_count: 5, total_bytes: 6 }
    await insertRows(client, 'build_reports', [
      ...reports,
      { ...owner, received_at: at(NOW + 100), ...full, total: 10, preflight: 8 },
      { ...owner, received_at: at(NOW + 101), surface_id: 'srf_other', total: 1 },
      { ...owner, received_at: at(NOW + 102), workspace_id: 'ws_2', total: 1 },
    ])
    const frames = {
      day: at(NOW).slice(0, 10),
      workspace_id: 'ws_1',
      release_slug: slug,
      service_version: '2',
      rank: 1,
    }
    await insertRows(client, 'release_frames', [
      { ...frames, finding_id: `fnd_${'a'.repeat(26)}`, frame_count: 10, resolved_frame_count: 7 },
      { ...frames, finding_id: `fnd_${'b'.repeat(26)}`, frame_count: 6, resolved_frame_count: 5 },
      { ...frames, finding_id: `fnd_${'c'.repeat(26)}`, frame_count: 9, workspace_id: 'ws_2' },
    ])

    const answer = await askRelease(slug)
    const { buildReports, ...rest } = answer
    expect(rest).toEqual({
      slug,
      version: '2.0.0+1',
      surfaceId: 'srf_1',
      commit: 'c0ffee',
      createdAt: created.createdAt,
      sourceMapCount: 2,
      sourceFileCount: 7,
      completedAt,
      metadata,
      symbolication: { resolvedFrames: 12, totalFrames: 16, share: 0.75 },
      manifest: { completedAt, files: files.map(({ sha256: _, ...file }) => file), nextCursor: null },
    })
    expect(buildReports).toHaveLength(10)
    expect(buildReports[0]).toEqual({
      receivedAt: new Date(NOW + 100).toISOString(),
      result: 'ok',
      discover: 1,
      createRelease: 2,
      upload: 0,
      cleanup: 4,
      total: 10,
      fileCount: 5,
      totalBytes: 6,
      preflight: 8,
    })
    expect(buildReports[1]).toEqual({ receivedAt: new Date(NOW + 11).toISOString(), total: 11 })
    expect(buildReports[9]).toMatchObject({ total: 3 })
  })

  it('a release without a completion has no manifest, and counters of 0', async () => {
    const slug = slugOf('bare')
    await registerRelease(store, { slug })
    expect(await askRelease(slug)).toMatchObject({
      sourceMapCount: 0,
      sourceFileCount: 0,
      completedAt: null,
      metadata: null,
      symbolication: { resolvedFrames: 0, totalFrames: 0, share: null },
      buildReports: [],
      manifest: null,
    })
    const empty = await registerRelease(store, { slug: slugOf('empty') })
    await complete(empty, 1, [])
    expect(await askRelease(empty.slug)).toMatchObject({ sourceMapCount: 0, manifest: { files: [], nextCursor: null } })
  })

  describe('a large manifest', () => {
    const files = Array.from({ length: 25_000 }, (_, i) => manifestFile(i))
    let release: Release

    beforeAll(async () => {
      release = await registerRelease(store, { slug: slugOf('large') })
      await complete(release, 100, files)
    })

    it.each(['', 'limit=7000&'])('is read whole page by page (%s)', async size => {
      const seen: unknown[] = []
      let cursor = ''
      while (seen.length <= files.length) {
        const { manifest, sourceMapCount } = await askRelease(release.slug, `?${size}${cursor}`)
        expect(sourceMapCount).toBe(25_000)
        seen.push(...(manifest?.files ?? []))
        if (!manifest?.nextCursor) break
        expect(manifest.files).toHaveLength(size ? 7_000 : 10_000)
        cursor = `cursor=${manifest.nextCursor}`
      }
      expect(seen).toEqual(files.map(({ sha256: _, ...file }) => file))
    })

    it('ends a page early where its texts are long', async () => {
      const long = await registerRelease(store, { slug: slugOf('long') })
      const chunkUrl = `https://cdn.example/${'\u0001'.repeat(2_000)}`
      await complete(
        long,
        1,
        Array.from({ length: 1_000 }, (_, i) => manifestFile(i, { chunkUrl })),
      )
      const first = await askRelease(long.slug)
      const second = await askRelease(long.slug, `?cursor=${first.manifest?.nextCursor}`)
      expect(first.manifest?.files.length).toBeLessThan(1_000)
      expect([...(first.manifest?.files ?? []), ...(second.manifest?.files ?? [])]).toHaveLength(1_000)
    })

    it('refuses a cursor of a manifest that was replaced, and places that are none', async () => {
      const { manifest } = await askRelease(release.slug, '?limit=1')
      await complete(release, 101, files.slice(0, 3))
      const path = `/v3/releases/${release.slug}?cursor=`
      const invalid = { status: 400, body: { code: 'REQUEST_INVALID', message: expect.stringMatching(/^cursor is/) } }
      expect(await ask(path + manifest?.nextCursor)).toMatchObject(invalid)
      const places = [[101, 9_999_999], [101, 3], [101, 200], [101, -1], [100, 0], [101], 'x', [101, 1.5]]
      for (const place of places) {
        expect(await ask(path + Buffer.from(JSON.stringify(place)).toString('base64url'))).toMatchObject(invalid)
      }
      expect(await ask(`/v3/releases/${release.slug}?limit=10001`)).toMatchObject({ status: 400 })
    })
  })

  it('counters and manifest agree while completions replace each other', async () => {
    const release = await registerRelease(store, { slug: slugOf('busy') })
    await complete(release, 1, [manifestFile(0)])
    let isOver = false
    const completions = (async () => {
      for (let sequence = 2; !isOver; sequence++) {
        await complete(
          release,
          sequence,
          Array.from({ length: sequence % 50 }, (_, i) => manifestFile(i)),
        )
      }
    })()
    try {
      const times = new Set<string | null>()
      for (let i = 0; i < 60; i++) {
        for (const answer of await Promise.all(Array.from({ length: 4 }, () => askRelease(release.slug)))) {
          expect(answer.manifest?.files).toHaveLength(answer.sourceMapCount)
          expect(answer.manifest?.completedAt).toBe(answer.completedAt)
          times.add(answer.completedAt)
        }
      }
      expect(times.size).toBeGreaterThan(5)
    } finally {
      isOver = true
      await completions
    }
  })

  it('a manifest that is lost, cut or of another count is no answer', async () => {
    const release = await registerRelease(store, { slug: slugOf('lost') })
    const pointer = await complete(release, 3, [manifestFile(1), manifestFile(2)])
    const { body } = (await objects.get(pointer.objectKey, 1e6)) ?? { body: Buffer.alloc(0) }
    const unavailable = { status: 503, retryAfter: '5', body: { code: 'INGEST_INFRA_UNAVAILABLE' } }
    const put = (bytes: Buffer) => objects.put(pointer.objectKey, bytes, { contentType: 'application/json' })
    await put(body.subarray(0, body.length / 2))
    expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
    await put(Buffer.from(JSON.stringify({ files: [manifestFile(1)] })))
    expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
    await objects.deleteMany([pointer.objectKey])
    expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
    await complete(release, 4, [manifestFile(1)])
    expect(await askRelease(release.slug)).toMatchObject({ sourceMapCount: 1 })
  })

  it('are read within their workspace only, with the permission for it', async () => {
    const slug = slugOf('mine')
    await registerRelease(store, { slug })
    const notFound = {
      status: 404,
      body: { code: 'RELEASE_NOT_FOUND', message: 'there is no such release', service: 'frontier-buildtime' },
    }
    const other = await signToken({ sub: 'user_2', org: 'globex' })
    expect(await ask(`/v3/releases/${slug}`, other)).toMatchObject(notFound)
    for (const unknown of ['rel_unknown', 'rel_', 'x', 'rel_%0A', `rel_${'x'.repeat(200)}`]) {
      expect(await ask(`/v3/releases/${unknown}`)).toMatchObject(notFound)
    }
    const { releases } = releasesPageSchema.parse((await ask('/v3/releases', other)).body)
    expect(releases.map(release => release.slug)).not.toContain(slug)
    for (const path of ['/v3/releases', `/v3/releases/${slug}`]) {
      expect(await ask(path, await signToken({ sub: 'stranger' }))).toMatchObject(notFound)
      expect(await ask(path, '')).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
      expect(await ask(path, await signToken({ org: undefined }))).toMatchObject({
        status: 403,
        body: { code: 'AUTH_ORG_REQUIRED' },
      })
      expect(await ask(path, await signToken({ sub: 'user_3', org: 'narrow' }))).toMatchObject({
        status: 403,
        body: { code: 'PERMISSION_DENIED', message: 'the permission org:releases:read is required' },
      })
    }
  })
})

describe('releases, while something is away', () => {
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
    api = await startApi(services, 'penstock', { ...s3Settings(services), API_QUERY_TIMEOUT_MS: '1500' })
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
  ] as const)('%s: 503 with Retry-After, and 200 when it is back', async (_name, which, paths) => {
    const ask = (path: string) => request(api.baseUrl, path, token)
    const service = services[which]
    expect((await ask('/v3/releases')).status).toBe(200)
    await service.kill9()
    for (const path of paths) {
      const startedAt = performance.now()
      expect(await ask(path)).toEqual({
        status: 503,
        retryAfter: '5',
        body: { code: 'INGEST_INFRA_UNAVAILABLE', message: expect.any(String), service: 'api-analytics' },
      })
      expect(performance.now() - startedAt).toBeLessThan(3_000)
    }
    if (which !== 'redis') expect((await ask('/v3/releases')).status).toBe(200)
    await service.restart()
    for (const path of paths) await until(`${path} is read again`, async () => (await ask(path)).status === 200)
  })

  it('an object store that is silent: 503 when the deadline has passed', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const settings = { ...s3Settings(services), S3_ENDPOINT: `http://127.0.0.1:${port}`, API_QUERY_TIMEOUT_MS: '1500' }
    const waiting = await startApi(services, 'penstock', settings)
    try {
      const startedAt = performance.now()
      const answer = await request(waiting.baseUrl, '/v3/releases/rel_a', token)
      expect(answer).toMatchObject({ status: 503, body: { code: 'INGEST_INFRA_UNAVAILABLE' } })
      expect(performance.now() - startedAt).toBeLessThan(2_500)
    } finally {
      await waiting.stop()
      silent.close()
    }
  })
})
