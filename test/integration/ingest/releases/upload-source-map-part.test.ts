import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { HOUR_S, KIB, MIB } from '../../../../schemas/units.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { partKey } from '../../../../shared/object-store/object-keys.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { OWNER, refusal, sha256, startBuildEdge } from '../../../support/services/build-edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { redis, edge, logLines, send, register, sign, putPart, framesOf } = build

describe('a part', () => {
  it('conflicts with the map of a manifest, until the release is deleted', async () => {
    const slug = await register()
    const path = 'assets/app.js.map'
    expect((await putPart(slug, path, 0, randomBytes(10))).status).toBe(200)
    await redis.hset(uploadKeys({ ...OWNER, slug }).parts(path), 'sealed', 1)
    const releases = createReleaseStore(redis)
    const counters = { sourceMapCount: 1, sourceFileCount: 1, completedAt: new Date().toISOString() }
    await releases.replaceManifest('ws_1', slug, { version: 1, sequence: 1, objectKey: 'a', ...counters })
    for (const part of [0, 1]) {
      expect(await putPart(slug, path, part, randomBytes(10))).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT'))
    }
    await releases.remove('ws_1', slug)
    expect(await putPart(slug, path, 0, randomBytes(10))).toMatchObject(
      refusal(503, 'INGEST_INFRA_UNAVAILABLE', /send the part again/),
    )
    expect((await putPart(slug, path, 0, randomBytes(10))).status).toBe(200)
    expect((await putPart(slug, path, 1, randomBytes(10))).status).toBe(200)
    expect(await putPart(slug, path, 1, randomBytes(10))).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT'))
  })

  it('is answered with its object key and is in the queue once, however often it is sent', async () => {
    const slug = await register()
    const [one, two] = [randomBytes(300), randomBytes(100)]
    const path = 'assets/app.js.map'
    for (const [part, body] of [
      [7, two],
      [0, one],
      [7, two],
    ] as const) {
      const answer = await putPart(slug, path, part, body)
      expect(answer).toMatchObject({ status: 200, body: { objectKey: partKey({ ...OWNER, slug, path }, part) } })
    }
    expect(await putPart(slug, path, 0, two)).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT', /other bytes/))
    const queued = await framesOf('source-maps', slug)
    expect(queued.map(frame => JSON.parse(frame.attributes))).toEqual([
      { kind: 'part', slug, path, part: 7, sha256: sha256(two) },
      { kind: 'part', slug, path, part: 0, sha256: sha256(one) },
    ])
    expect(queued.map(frame => frame.body)).toEqual([two, one])
    expect(queued[0]).toMatchObject({ ...OWNER, contentType: 'application/octet-stream', contentEncoding: 'identity' })
    const claims = uploadKeys({ ...OWNER, slug }).parts(path)
    expect(await redis.hgetall(claims)).toMatchObject({
      0: `${sha256(one)}:300`,
      7: `${sha256(two)}:100`,
      bytes: '400',
    })
    expect(await redis.ttl(claims)).toBe(-1)
  })

  it('is kept while a part waits, and is not extended by a part that is repeated', async () => {
    const slug = await register()
    const claims = uploadKeys({ ...OWNER, slug }).parts('a.map')
    const put = (part: number) => putPart(slug, 'a.map', part, Buffer.from(`part ${part}`))
    await put(0)
    expect(await redis.ttl(claims)).toBe(-1)
    await redis.hset(claims, 'stored:0', Math.floor(Date.now() / 1_000))
    await redis.expire(claims, 60)
    expect((await put(0)).status).toBe(200)
    expect(await redis.ttl(claims)).toBeLessThanOrEqual(60)
    await put(1)
    expect(await redis.ttl(claims)).toBe(-1)
    await redis.del(claims)
  })

  it('accepts a part again whose object may have been deleted since', async () => {
    const slug = await register()
    const claims = uploadKeys({ ...OWNER, slug }).parts('a.map')
    const put = () => putPart(slug, 'a.map', 0, Buffer.from('part'))
    const enqueued = async () => (await framesOf('source-maps', slug)).length
    await put()
    const hoursAgo = (hours: number) => Math.floor(Date.now() / 1_000) - hours * HOUR_S
    await redis.hset(claims, 'stored:0', hoursAgo(45))
    expect((await put()).status).toBe(200)
    expect(await enqueued()).toBe(1)
    await redis.hset(claims, 'stored:0', hoursAgo(47))
    expect((await put()).status).toBe(200)
    expect(await enqueued()).toBe(2)
    expect(await redis.hgetall(claims)).toMatchObject({ bytes: '4', 'waits:0': '1' })
    expect(await redis.hexists(claims, 'stored:0')).toBe(0)
    await redis.del(claims)
  })

  it('is accepted once when sent many times at once: equal bytes are all answered, different bytes only once (claim-part.lua)', async () => {
    const slug = await register()
    const body = randomBytes(1_000)
    const same = await Promise.all(Array.from({ length: 20 }, () => putPart(slug, 'same.map', 0, body)))
    expect(same.map(answer => answer.status)).toEqual(Array(20).fill(200))
    const others = await Promise.all(Array.from({ length: 20 }, () => putPart(slug, 'other.map', 0, randomBytes(50))))
    expect(others.filter(answer => answer.status === 200)).toHaveLength(1)
    expect(others.filter(answer => answer.status === 409)).toHaveLength(19)
    expect(await framesOf('source-maps', slug)).toHaveLength(2)
  })

  it('counts in the flow of its queue only when it is accepted', async () => {
    const slug = await register()
    const { flow } = queueKeys('source-maps')
    const before = (await redis.hmget(flow, 'acceptedPayloads', 'acceptedBytes')).map(Number)
    await putPart(slug, 'a.map', 0, Buffer.from('first'))
    await putPart(slug, 'a.map', 0, Buffer.from('first'))
    await putPart(slug, 'a.map', 0, Buffer.from('other'))
    const after = (await redis.hmget(flow, 'acceptedPayloads', 'acceptedBytes')).map(Number)
    expect(after[0]).toBe((before[0] ?? 0) + 1)
    const [frame] = await framesOf('source-maps', slug)
    expect(after[1]).toBe((before[1] ?? 0) + 1 + 40 + 9 + Buffer.byteLength(frame?.attributes ?? '') + 5)
  })

  it('is accepted before its release is registered, and with a number up to 4095', async () => {
    for (const part of ['0', '4095', '0007']) {
      expect((await putPart('rel_unheard-of', 'a.map', part, Buffer.from(part))).status).toBe(200)
    }
    for (const part of ['4096', '-1', '1.5', '1e3', '', 'x', '99999999999']) {
      const answer = await putPart('rel_unheard-of', 'a.map', part, Buffer.from('x'))
      expect(answer).toMatchObject(refusal(400, 'REQUEST_INVALID', /^part must be a whole number from 0 to 4095$/))
    }
  })

  it('has at most 512 KiB', async () => {
    const slug = await register()
    expect((await putPart(slug, 'a.map', 0, randomBytes(512 * KIB))).status).toBe(200)
    const over = await putPart(slug, 'a.map', 1, randomBytes(512 * KIB + 1))
    expect(over).toMatchObject(refusal(413, 'RELEASE_SIGN_FILE_TOO_LARGE', /512 KiB/))
  })

  it('must fit with the other parts into the declared size, or into 64 MiB', async () => {
    const slug = await register()
    await sign(slug, [{ path: 'declared.map', size: 10, hash: 'x' }])
    expect((await putPart(slug, 'declared.map', 0, Buffer.alloc(6))).status).toBe(200)
    expect(await putPart(slug, 'declared.map', 1, Buffer.alloc(5))).toMatchObject(
      refusal(413, 'RELEASE_SIGN_FILE_TOO_LARGE', /declared/),
    )
    expect((await putPart(slug, 'declared.map', 1, Buffer.alloc(4))).status).toBe(200)
    expect((await putPart(slug, 'declared.map', 0, Buffer.alloc(6))).status).toBe(200)

    const { parts } = uploadKeys({ ...OWNER, slug })
    await redis.hset(parts('undeclared.map'), { 0: 'claimed:before', bytes: 64 * MIB - 5 })
    const over = await putPart(slug, 'undeclared.map', 1, Buffer.alloc(6))
    expect(over).toMatchObject(refusal(413, 'RELEASE_SIGN_FILE_TOO_LARGE', /64 MiB/))
    expect((await putPart(slug, 'undeclared.map', 1, Buffer.alloc(5))).status).toBe(200)
  })

  it('of a sealed path is answered again, no other is added, and its claims do not expire', async () => {
    const slug = await register()
    const body = Buffer.from('only')
    await putPart(slug, 'a.map', 0, body)
    const claims = uploadKeys({ ...OWNER, slug }).parts('a.map')
    await redis.hset(claims, 'sealed', '1')
    await redis.persist(claims)
    const counters = { sourceMapCount: 1, sourceFileCount: 1, completedAt: new Date().toISOString() }
    const pointer = { version: 1, sequence: 1, objectKey: 'a', ...counters } as const
    await createReleaseStore(redis).replaceManifest('ws_1', slug, pointer)
    expect((await putPart(slug, 'a.map', 0, body)).status).toBe(200)
    expect(await putPart(slug, 'a.map', 1, body)).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT', /no further/))
    expect(await redis.ttl(claims)).toBe(-1)
    expect(await framesOf('source-maps', slug)).toHaveLength(1)
  })

  it('of a sealed path is taken again when its release has no manifest any more (forget-sealed.lua)', async () => {
    const slug = await register()
    const body = Buffer.from('only')
    const claims = uploadKeys({ ...OWNER, slug }).parts('a.map')
    for (const part of [0, 1]) expect((await putPart(slug, 'a.map', part, body)).status).toBe(200)
    expect((await putPart(slug, 'a.map', 0, body)).status).toBe(200)
    await redis.hset(claims, 'sealed', '1')
    const answers = await Promise.all([0, 1].map(part => putPart(slug, 'a.map', part, body)))
    expect(answers).toContainEqual(expect.objectContaining(refusal(503, 'INGEST_INFRA_UNAVAILABLE', /again/)))
    for (const part of [0, 1]) expect((await putPart(slug, 'a.map', part, body)).status).toBe(200)
    expect(await redis.hmget(claims, 'sealed', '0', '1')).toEqual([null, expect.any(String), expect.any(String)])
    expect((await framesOf('source-maps', slug)).length).toBe(4)
  })

  it.each([
    ['/etc/passwd', /relative/],
    ['../a.map', /\.\./],
    ['a/../../b.map', /\.\./],
    ['a\\..\\b.map', /separated/],
    ['a\0.map', /NUL/],
    ['', /empty/],
    ['x'.repeat(1_025), /1024 bytes/],
  ])('with the path %j is refused', async (path, message) => {
    const answer = await putPart('rel_x', path, 0, Buffer.from('x'))
    expect(answer).toMatchObject(refusal(400, 'REQUEST_INVALID', message))
  })

  it('requires a number, a path, bytes and the slug of a release', async () => {
    const put = (path: string, body = 'x', type = 'application/octet-stream') => send('PUT', path, { body, type })
    const invalid = (message: RegExp, status = 400) => refusal(status, 'REQUEST_INVALID', message)
    expect(await put('/v3/releases/rel_x/source-maps?path=a')).toMatchObject(invalid(/^part is required/))
    expect(await put('/v3/releases/rel_x/source-maps?part=0')).toMatchObject(invalid(/^path is required/))
    expect(await put('/v3/releases/rel_x/source-maps?part=0&path=a', '')).toMatchObject(invalid(/empty/))
    expect(await put('/v3/releases/1.0/source-maps?part=0&path=a')).toMatchObject(invalid(/^releaseSlug .*rel_/))
    expect(await put('/v3/releases/rel_x/source-maps?part=0&path=a', 'x', 'text/csv')).toMatchObject(
      invalid(/content-type/, 415),
    )
    expect((await put('/v3/releases/rel_x/source-maps')).headers.get('allow')).toBeNull()
    const get = await fetch(`${edge.baseUrl}/v3/releases/rel_x/source-maps`)
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'PUT, OPTIONS'])
  })
})

it('counts parts by outcome', async () => {
  const text = await edge.metrics()
  const count = (line: RegExp) => Number(line.exec(text)?.[1] ?? 0)
  for (const outcome of ['claimed', 'repeated', 'conflict', 'sealed', 'too_large']) {
    expect(
      count(new RegExp(`penstock_source_map_parts_total\\{outcome="${outcome}".*} (\\d+)`)),
      outcome,
    ).toBeGreaterThan(0)
  }
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
