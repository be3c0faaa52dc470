import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { declareMaps, MAX_DECLARED_PATHS, MAX_STAGED_BYTES } from '../../../../ingest/releases/declare-maps.ts'
import { DAY_S, HOUR_MS, MIB } from '../../../../schemas/units.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { UPLOADS_MAX_BYTES, uploadBudgetKeys } from '../../../../shared/queue/upload-budget.ts'
import { stagedKeys, uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { OWNER, refusal, sha256, startBuildEdge } from '../../../support/services/build-edge.ts'
import { startEdge } from '../../../support/services/edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { redis, objects, settings, logLines, send, register, sign } = build

describe('sign', () => {
  it('refuses more when the uploads of the workspace take too much memory, until they expire', async () => {
    const slug = await register()
    const files = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => ({ path: `a/${from + i}.map`, size: 1, hash: 'x' }))
    expect((await sign(slug, files(0, 10))).status).toBe(200)
    const { sums, ends } = uploadBudgetKeys('ws_1')
    const used = Number(await redis.hget(sums, 'total'))
    expect(used).toBeGreaterThan(2_000)
    // The same paths again take no more.
    expect((await sign(slug, files(0, 10))).status).toBe(200)
    expect(Number(await redis.hget(sums, 'total'))).toBe(used)

    await redis.hset(sums, 'total', UPLOADS_MAX_BYTES, 'srf_1/rel_other', UPLOADS_MAX_BYTES - used)
    await redis.zadd(ends, Math.ceil(Date.now() / 1_000) + 3_600, 'srf_1/rel_other')
    const refused = await sign(slug, files(10, 10))
    expect(refused).toMatchObject(refusal(429, 'INGEST_BACKPRESSURE', /^files must bring .* at most 256 MiB of memory/))
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(await redis.hlen(uploadKeys({ ...OWNER, slug }).signed)).toBe(10)
    const part = await build.putPart(slug, 'p.map', 0, randomBytes(10))
    expect(part).toMatchObject(refusal(429, 'INGEST_BACKPRESSURE', /^path must bring .* at most 256 MiB of memory/))
    expect((await sign(slug, files(0, 10))).status).toBe(200)

    await redis.zadd(ends, Math.floor(Date.now() / 1_000) - 1, 'srf_1/rel_other')
    expect((await sign(slug, files(10, 10))).status).toBe(200)
    expect((await build.putPart(slug, 'p.map', 0, randomBytes(10))).status).toBe(200)
    expect(Number(await redis.hget(sums, 'total'))).toBeGreaterThan(used)
    expect(await redis.hexists(sums, 'srf_1/rel_other')).toBe(0)
    await redis.del(sums, ends)
  })

  const put = (url: unknown, body: Uint8Array, headers: Record<string, string> = {}) =>
    fetch(url as string, { method: 'PUT', body, headers }).then(response => response.status)

  it('returns a URL that accepts exactly the declared size, and declares the map for a day', async () => {
    const slug = await register()
    const body = randomBytes(1_000)
    const declared = { path: 'assets/ü app.js.map', size: body.length, hash: sha256(body) }
    const answer = await sign(slug, [declared, { path: 'b.map', size: 2, hash: 'sha512-x' }])
    expect(answer.status).toBe(200)
    const files = answer.body.files as Record<string, string>[]
    expect(files.map(file => file.path)).toEqual([declared.path, 'b.map'])
    const [file] = files
    expect(Object.keys(file ?? {}).sort()).toEqual(['expiresAt', 'objectKey', 'path', 'uploadUrl'])
    expect(Date.parse(file?.expiresAt ?? '') - Date.now()).toBeGreaterThan(3_590_000)
    expect(Date.parse(file?.expiresAt ?? '') - Date.now()).toBeLessThanOrEqual(HOUR_MS)
    expect(await put(file?.uploadUrl, randomBytes(1_001))).toBe(403)
    expect(await put(file?.uploadUrl, randomBytes(999))).toBe(403)
    expect(await objects.head(file?.objectKey ?? '')).toBeUndefined()
    expect(await put(file?.uploadUrl, body)).toBe(200)
    expect(await put(file?.uploadUrl, body, { 'content-type': 'application/json' })).toBe(200)
    expect((await objects.get(file?.objectKey ?? '', MIB))?.body).toEqual(body)
    const { signed } = uploadKeys({ ...OWNER, slug })
    expect(JSON.parse((await redis.hget(signed, declared.path)) ?? '')).toEqual({
      size: declared.size,
      hash: declared.hash,
      stagingKey: file?.objectKey,
    })
    expect(await redis.ttl(signed)).toBeGreaterThan(DAY_S - 60)
  })

  it('requests no map that was verified in this workspace, but one that was verified in another', async () => {
    const slug = await register()
    const [here, elsewhere] = [sha256('here'), sha256('elsewhere')]
    await createReleaseStore(redis).addStoredMaps('ws_1', [here])
    await createReleaseStore(redis).addStoredMaps('ws_2', [elsewhere])
    const answer = await sign(slug, [
      { path: 'a.map', size: 4, hash: `sha256:${here.toUpperCase()}` },
      { path: 'b.map', size: 9, hash: elsewhere },
    ])
    expect(answer.body.files).toEqual([
      { path: 'a.map', objectKey: sourceMapKey('ws_1', here), alreadyUploaded: true },
      expect.objectContaining({ path: 'b.map', uploadUrl: expect.any(String) }),
    ])
    const declared = await redis.hget(uploadKeys({ ...OWNER, slug }).signed, 'a.map')
    expect(JSON.parse(declared ?? '')).toMatchObject({ size: 4, sha256: here })
  })

  it('signs as many files as fit into a request', async () => {
    const slug = await register()
    const files = Array.from({ length: 1_500 }, (_, i) => ({
      path: `assets/${i}.js.map`,
      size: i + 1,
      hash: sha256(`${i}`),
    }))
    const answer = await sign(slug, files)
    expect(answer.status).toBe(200)
    const urls = (answer.body.files as { uploadUrl: string }[]).map(file => file.uploadUrl)
    expect(new Set(urls).size).toBe(1_500)
    expect(await put(urls[1_499], randomBytes(1_500))).toBe(200)
  })

  it('returns URLs of the public endpoint if there is one', async () => {
    const slug = await register()
    const of = await startEdge(redisUrl, { ...settings, S3_PUBLIC_ENDPOINT: 'https://maps.example:8443/store' })
    try {
      const answer = await sign(slug, [{ path: 'a.map', size: 1, hash: 'x' }], { of })
      const [file] = answer.body.files as { uploadUrl: string }[]
      expect(file?.uploadUrl).toMatch(/^https:\/\/maps\.example:8443\/store\/penstock\/uploads\/ws_1\//)
    } finally {
      await of.stop()
    }
  })

  const file = { path: 'a.map', size: 1, hash: 'x' }
  it.each<[string, unknown, number, string, RegExp]>([
    ['no files', { files: [] }, 400, 'REQUEST_INVALID', /^files /],
    ['a path that climbs', { files: [{ ...file, path: 'a/../../b' }] }, 400, 'REQUEST_INVALID', /^files.0.path .*\.\./],
    ['a size of nothing', { files: [{ ...file, size: 0 }] }, 400, 'REQUEST_INVALID', /^files.0.size /],
    ['no hash', { files: [{ path: 'a', size: 1 }] }, 400, 'REQUEST_INVALID', /^files.0.hash /],
    ['a path twice', { files: [file, { ...file, hash: 'y' }] }, 400, 'REQUEST_INVALID', /^files.1.path .*twice: a.map/],
    [
      'a map over 64 MiB, naming it',
      { files: [file, { ...file, path: 'big.map', size: 64 * MIB + 1 }] },
      413,
      'RELEASE_SIGN_FILE_TOO_LARGE',
      /files.1.size .*big.map/,
    ],
  ])('refuses %s', async (_name, body, status, code, message) => {
    const slug = await register()
    const answer = await send('POST', `/v3/releases/${slug}/source-maps/sign`, { body })
    expect(answer).toMatchObject(refusal(status, code, message))
    expect(await redis.exists(uploadKeys({ ...OWNER, slug }).signed)).toBe(0)
  })

  it('refuses many invalid files at the price of one, and names the first', async () => {
    const slug = await register()
    const body = `{"files":[${'{},'.repeat(80_000)}{}]}`
    const path = `/v3/releases/${slug}/source-maps/sign`
    const answer = await send('POST', path, { body })
    expect(answer).toMatchObject(refusal(400, 'REQUEST_INVALID', /^files.0.path is required$/))
    const before = process.cpuUsage()
    for (let i = 0; i < 5; i++) await send('POST', path, { body })
    const { user, system } = process.cpuUsage(before)
    // A check of all files takes 0.3 s for each request.
    expect((user + system) / 1_000).toBeLessThan(600)
  })

  it('limits the declared paths of a release, and accepts a declared path again', async () => {
    const slug = await register()
    const { signed } = uploadKeys({ ...OWNER, slug })
    await redis.hset(signed, Object.fromEntries(Array.from({ length: MAX_DECLARED_PATHS }, (_, i) => [`p${i}`, '{}'])))
    expect(await sign(slug, [file])).toMatchObject(refusal(400, 'REQUEST_INVALID', /100000/))
    expect(await redis.hlen(signed)).toBe(MAX_DECLARED_PATHS)
    expect((await sign(slug, [{ ...file, path: 'p7' }])).status).toBe(200)
    await redis.del(signed)
  })
})

it('limits the bytes that a workspace may have declared, counts an object once, and forgets them after a day (declare-maps.lua)', async () => {
  const limits = { paths: 100, stagedBytes: 3 * MIB }
  const release = { workspaceId: 'ws_staged', surfaceId: 'srf_1', slug: 'rel_1' }
  const staged = stagedKeys(release.workspaceId)
  const declare = (path: string, size: number, slug = 'rel_1') =>
    declareMaps(
      redis,
      { ...release, slug },
      new Map([[path, { size, hash: 'x', stagingKey: `uploads/${path}-${size}` }]]),
      limits,
    )
  expect(await declare('a.map', MIB)).toBe('declared')
  expect(await declare('a.map', MIB)).toBe('declared')
  expect(await declare('b.map', MIB, 'rel_2')).toBe('declared')
  // The first object can still be uploaded, so it counts too.
  expect(await declare('a.map', MIB + 1)).toBe('too_many_bytes')
  expect(await redis.hget(uploadKeys(release).signed, 'a.map')).toContain(`"size":${MIB}`)
  expect(await redis.get(staged.bytes)).toBe(String(2 * MIB))
  // A map that is stored already needs no room.
  const known = new Map([['c.map', { size: 64 * MIB, hash: 'x', sha256: 'a'.repeat(64) }]])
  expect(await declareMaps(redis, release, known, limits)).toBe('declared')
  for (const member of await redis.zrange(staged.objects, '0', '-1')) await redis.zadd(staged.objects, 'XX', 1, member)
  expect(await declare('d.map', 3 * MIB)).toBe('declared')
  expect(await redis.get(staged.bytes)).toBe(String(3 * MIB))
  expect(await redis.zcard(staged.objects)).toBe(1)
})

it('answers a workspace that has declared too much', async () => {
  const slug = await register()
  const { bytes } = stagedKeys(OWNER.workspaceId)
  const before = await redis.get(bytes)
  await redis.set(bytes, MAX_STAGED_BYTES)
  try {
    expect(await sign(slug, [{ path: 'a.map', size: 1, hash: 'x' }])).toMatchObject(
      refusal(400, 'REQUEST_INVALID', /^files must bring the workspace to at most 8192 MiB/),
    )
  } finally {
    await redis.set(bytes, before ?? 0)
  }
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
