import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import { MAX_DECLARED_PATHS } from '../../../ingest/releases/declare-maps.ts'
import type { Verdict } from '../../../schemas/queues/source-maps.ts'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { partKey, sourceMapKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore, type ObjectStore } from '../../../shared/object-store/object-store.ts'
import { decodePayload, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { uploadKeys, VERDICTS_CHANNEL, verdictKey } from '../../../shared/queue/upload-keys.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

const { s3, redisUrl: sharedRedisUrl } = inject('services')
const redisUrl = `${sharedRedisUrl}/12`
const KIB = 1024
const MIB = 1024 * KIB
const DAY_S = 86_400
const SETTINGS = {
  S3_ENDPOINT: s3.endpoint,
  S3_BUCKET: s3.bucket,
  AWS_ACCESS_KEY_ID: s3.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
}
const SECRET: Partial<SurfaceKey> = { kind: 'secret', scopes: ['release:write'] }
const PLACE = { workspaceId: 'ws_1', surfaceId: 'srf_1' }

let redis: Redis
let directory: Directory
let edge: TestEdge
let objects: ObjectStore
let secretKey: string
const logLines: string[] = []
let serial = 0

beforeAll(async () => {
  redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  directory = createDirectory(redis)
  secretKey = await issueKey(directory, SECRET)
  objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  const logger = pino({ level: 'trace' }, { write: line => void logLines.push(line) })
  edge = await startEdge(redisUrl, { ...SETTINGS, VERDICT_TIMEOUT_MS: '1500', VERDICT_MAX_WAITING: '3' }, logger)
})

afterAll(async () => {
  await edge?.stop()
  objects?.close()
  redis?.disconnect()
})

interface Answer {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

interface Sent {
  key?: string
  headers?: Record<string, string>
  body?: unknown
  type?: string
  of?: TestEdge
}

async function send(method: string, path: string, sent: Sent = {}): Promise<Answer> {
  const { key = secretKey, body, type, headers, of = edge } = sent
  const response = await fetch(of.baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(type === '' ? {} : { 'content-type': type ?? 'application/json' }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body) }),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')
const query = (params: Record<string, string | number>) =>
  new URLSearchParams(Object.entries(params).map(([name, value]): [string, string] => [name, String(value)])).toString()

async function register(sent: Sent = {}): Promise<string> {
  const version = `1.0.${++serial}`
  const answer = await send('POST', '/v3/releases', { body: { version }, ...sent })
  expect(answer.status).toBe(200)
  return answer.body.releaseSlug as string
}

const sign = (slug: string, files: unknown[], sent: Sent = {}) =>
  send('POST', `/v3/releases/${slug}/source-maps/sign`, { body: { files }, ...sent })

const putPart = (slug: string, path: string, part: number | string, body: Uint8Array, sent: Sent = {}) =>
  send('PUT', `/v3/releases/${slug}/source-maps?${query({ part, path })}`, {
    type: 'application/octet-stream',
    body,
    ...sent,
  })

const refusal = (status: number, code: string, message?: RegExp, service = 'frontier-buildtime') => ({
  status,
  body: { code, service, message: message ? expect.stringMatching(message) : expect.any(String) },
})

/** What the queue holds. */
async function frames(queue: 'source-maps' | 'completions' | 'build-reports'): Promise<PayloadFrame[]> {
  const names = await redis.keys(`${queueKeys(queue).payloadPrefix}*`)
  const payloads = await Promise.all(names.sort().map(name => redis.getBuffer(name)))
  return payloads.flatMap(payload => (payload ? decodePayload(payload) : []))
}

const framesOf = async (queue: Parameters<typeof frames>[0], slug: string) =>
  (await frames(queue)).filter(frame => JSON.parse(frame.attributes).slug === slug)

async function leaveVerdict(attempt: string, verdict: Verdict, isCalledOut = true): Promise<void> {
  await redis.set(verdictKey(attempt), JSON.stringify(verdict), 'EX', 120)
  if (isCalledOut) await redis.publish(VERDICTS_CHANNEL, attempt)
}

/** Stands for the worker: waits for the job, and says what it found. */
async function judge(queue: 'source-maps' | 'completions', slug: string, verdict: Verdict, isCalledOut = true) {
  const [frame] = await until('the request is in the queue', async () => {
    const found = await framesOf(queue, slug)
    return found.length > 0 ? found : undefined
  })
  const attributes = JSON.parse((frame as PayloadFrame).attributes)
  await leaveVerdict(attributes.attempt, verdict, isCalledOut)
  return { frame: frame as PayloadFrame, attributes }
}

/** Every operation of secret keys, with what is enough of a request to get past its credential. */
const OPERATIONS: [method: string, path: string, queue: string | undefined][] = [
  ['POST', '/v3/releases', undefined],
  ['POST', '/v3/releases/rel_x/source-maps/sign', undefined],
  ['PUT', '/v3/releases/rel_x/source-maps?part=0&path=a', 'source-maps'],
  ['PUT', '/v3/releases/rel_x/source-maps/upload?path=a', 'source-maps'],
  ['POST', '/v3/releases/rel_x/source-maps/complete', 'completions'],
  ['POST', '/v3/releases/rel_x/telemetry', 'build-reports'],
]

describe('credentials', () => {
  const missing = (message: RegExp) => refusal(401, 'AUTH_MISSING', message, 'frontier-auth')

  it.each(OPERATIONS)('%s %s asks for a secret key before all else', async (method, path) => {
    const body = 'x'.repeat(300)
    const ask = (authorization: string) => send(method, path, { body, type: 'text/csv', headers: { authorization } })
    expect(await ask('')).toMatchObject(missing(/is required/))
    expect(await ask('Basic abc')).toMatchObject(missing(/malformed/))
    expect(await ask(`Bearer ${secretKey}x`)).toMatchObject(missing(/malformed/))
    expect(await ask(`Bearer ${generateKey('secret')}`)).toMatchObject(missing(/unknown/))
    expect(await ask(`Bearer ${await issueKey(directory)}`)).toMatchObject(missing(/malformed/))
    expect(await ask(`Bearer ${await issueKey(directory, { ...SECRET, scopes: ['release:read'] })}`)).toMatchObject(
      refusal(403, 'AUTH_AK_SCOPE_MISMATCH', /release:write/, 'frontier-auth'),
    )
  })

  it('a public key opens no route of secret keys, and the reverse', async () => {
    const publicKey = await issueKey(directory)
    const headers = { authorization: '', 'x-service-public-key': publicKey }
    expect(await send('POST', '/v3/releases', { headers, body: {} })).toMatchObject(missing(/is required/))
    const drain = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': secretKey },
      body: '{}',
    })
    expect(drain.status).toBe(401)
  })

  it('a revoked key stops working within a second, and the message says so', async () => {
    const key = await issueKey(directory, SECRET)
    expect((await send('POST', '/v3/releases', { key, body: { version: '1' } })).status).toBe(200)
    const record = await directory.surfaceKeyByDigest(digestOf(key))
    if (!record) throw new Error('the key is not stored')
    await directory.putSurfaceKey({ ...record, revokedAt: new Date().toISOString() })
    const refused = () => send('POST', '/v3/releases', { key, body: { version: '1' } })
    const answer = await until(
      'the key is refused',
      async () => {
        const current = await refused()
        return current.status === 401 ? current : undefined
      },
      { deadlineMs: 1_000 },
    )
    expect(answer).toMatchObject(missing(/revoked/))
  })

  it('a key stops working when it expires', async () => {
    const expiresAt = new Date(Date.now() + 400)
    const key = await issueKey(directory, { ...SECRET, expiresAt: expiresAt.toISOString() })
    expect((await send('POST', '/v3/releases', { key, body: { version: '1' } })).status).toBe(200)
    await until('it is past its time', () => Date.now() > expiresAt.getTime())
    expect(await send('POST', '/v3/releases', { key, body: { version: '1' } })).toMatchObject(missing(/expired/))
  })

  it("another surface's release is out of reach, another workspace's is unknown", async () => {
    const slug = await register()
    const otherSurface = await issueKey(directory, { ...SECRET, surfaceId: 'srf_2' })
    const otherWorkspace = await issueKey(directory, { ...SECRET, workspaceId: 'ws_2' })
    for (const [method, path] of OPERATIONS.slice(1)) {
      const answer = await send(method, path.replace('rel_x', slug), { key: otherSurface, body: {} })
      expect(answer).toMatchObject(refusal(403, 'AUTH_AK_SCOPE_MISMATCH', /another surface/, 'frontier-auth'))
    }
    expect(await sign(slug, [], { key: otherWorkspace })).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
    const bytes = Buffer.from('theirs')
    expect((await putPart(slug, 'a.map', 0, bytes, { key: otherWorkspace })).status).toBe(200)
    expect((await putPart(slug, 'a.map', 0, Buffer.from('ours'))).status).toBe(200)
  })

  it('no answer lets a page of another origin read it', async () => {
    const answer = await send('POST', '/v3/releases', { body: {}, headers: { origin: 'https://shop.example' } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('register', () => {
  it('gives the same slug to the same version, and keeps what came first', async () => {
    const first = { version: '2.0.0', commit: 'abc', metadata: { branch: 'main', n: [1, null] } }
    const answer = await send('POST', '/v3/releases', { body: first })
    expect(answer).toMatchObject({ status: 200, body: { releaseSlug: expect.stringMatching(/^rel_[a-z2-7]{26}$/) } })
    const again = await send('POST', '/v3/releases', { body: { version: '2.0.0', commit: 'other' } })
    expect(again.body).toEqual(answer.body)
    const slug = answer.body.releaseSlug as string
    expect(await createReleaseStore(redis).release('ws_1', slug)).toMatchObject({
      slug,
      ...PLACE,
      name: '2.0.0',
      commit: 'abc',
      metadata: first.metadata,
    })
    const key = await issueKey(directory, { ...SECRET, surfaceId: 'srf_2' })
    const other = await send('POST', '/v3/releases', { key, body: first })
    expect(other.body.releaseSlug).not.toBe(slug)
  })

  const deep = `{"version":"1","metadata":${'{"a":'.repeat(30_000)}1${'}'.repeat(30_001)}`
  it.each<[string, unknown, string | undefined, number, RegExp]>([
    ['no version', {}, undefined, 400, /^version /],
    ['an empty version', { version: '' }, undefined, 400, /^version /],
    ['an unknown field', { version: '1', comit: 'x' }, undefined, 400, /comit/],
    ['metadata that is no object', { version: '1', metadata: [] }, undefined, 400, /^metadata /],
    ['nesting without end', deep, undefined, 400, /nested/],
    ['no JSON', '{', undefined, 400, /not valid JSON/],
    ['a form', 'version=1', 'application/x-www-form-urlencoded', 415, /content-type/],
    ['text', '{"version":"1"}', 'text/plain', 415, /content-type/],
    ['256 KiB and a byte', 'x'.repeat(256 * KIB + 1), undefined, 413, /256 KiB/],
  ])('refuses %s', async (_name, body, type, status, message) => {
    const answer = await send('POST', '/v3/releases', { body, ...(type && { type }) })
    expect(answer).toMatchObject(refusal(status, 'REQUEST_INVALID', message))
  })
})

describe('sign', () => {
  const put = (url: unknown, body: Uint8Array, headers: Record<string, string> = {}) =>
    fetch(url as string, { method: 'PUT', body, headers }).then(response => response.status)

  it('gives an address that takes exactly the declared size, and declares the map for a day', async () => {
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
    expect(Date.parse(file?.expiresAt ?? '') - Date.now()).toBeLessThanOrEqual(3_600_000)
    expect(await put(file?.uploadUrl, randomBytes(1_001))).toBe(403)
    expect(await put(file?.uploadUrl, randomBytes(999))).toBe(403)
    expect(await objects.head(file?.objectKey ?? '')).toBeUndefined()
    expect(await put(file?.uploadUrl, body)).toBe(200)
    expect(await put(file?.uploadUrl, body, { 'content-type': 'application/json' })).toBe(200)
    expect((await objects.get(file?.objectKey ?? '', MIB))?.body).toEqual(body)
    const { signed } = uploadKeys({ ...PLACE, slug })
    expect(JSON.parse((await redis.hget(signed, declared.path)) ?? '')).toEqual({
      size: declared.size,
      hash: declared.hash,
      stagingKey: file?.objectKey,
    })
    expect(await redis.ttl(signed)).toBeGreaterThan(DAY_S - 60)
  })

  it('asks for no bytes that were verified in this workspace, and for those of another', async () => {
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
    const declared = await redis.hget(uploadKeys({ ...PLACE, slug }).signed, 'a.map')
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

  it('names addresses by the public endpoint where there is one', async () => {
    const slug = await register()
    const of = await startEdge(redisUrl, { ...SETTINGS, S3_PUBLIC_ENDPOINT: 'https://maps.example:8443/store' })
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
    expect(await redis.exists(uploadKeys({ ...PLACE, slug }).signed)).toBe(0)
  })

  it('keeps no more paths than a release may wait for, and takes those that are there again', async () => {
    const slug = await register()
    const { signed } = uploadKeys({ ...PLACE, slug })
    await redis.hset(signed, Object.fromEntries(Array.from({ length: MAX_DECLARED_PATHS }, (_, i) => [`p${i}`, '{}'])))
    expect(await sign(slug, [file])).toMatchObject(refusal(400, 'REQUEST_INVALID', /100000/))
    expect(await redis.hlen(signed)).toBe(MAX_DECLARED_PATHS)
    expect((await sign(slug, [{ ...file, path: 'p7' }])).status).toBe(200)
    await redis.del(signed)
  })
})

describe('a part', () => {
  it('is answered with its key and is in the queue, once, however often it comes', async () => {
    const slug = await register()
    const [one, two] = [randomBytes(300), randomBytes(100)]
    const path = 'assets/app.js.map'
    for (const [part, body] of [
      [7, two],
      [0, one],
      [7, two],
    ] as const) {
      const answer = await putPart(slug, path, part, body)
      expect(answer).toMatchObject({ status: 200, body: { objectKey: partKey({ ...PLACE, slug, path }, part) } })
    }
    expect(await putPart(slug, path, 0, two)).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT', /other bytes/))
    const queued = await framesOf('source-maps', slug)
    expect(queued.map(frame => JSON.parse(frame.attributes))).toEqual([
      { kind: 'part', slug, path, part: 7, sha256: sha256(two) },
      { kind: 'part', slug, path, part: 0, sha256: sha256(one) },
    ])
    expect(queued.map(frame => frame.body)).toEqual([two, one])
    expect(queued[0]).toMatchObject({ ...PLACE, contentType: 'application/octet-stream', contentEncoding: 'identity' })
    const claims = uploadKeys({ ...PLACE, slug }).parts(path)
    expect(await redis.hgetall(claims)).toEqual({ 0: `${sha256(one)}:300`, 7: `${sha256(two)}:100`, bytes: '400' })
    expect(await redis.ttl(claims)).toBeGreaterThan(DAY_S - 60)
  })

  it('of many sent at once is taken once: of the same bytes all are answered, of others one wins', async () => {
    const slug = await register()
    const body = randomBytes(1_000)
    const same = await Promise.all(Array.from({ length: 20 }, () => putPart(slug, 'same.map', 0, body)))
    expect(same.map(answer => answer.status)).toEqual(Array(20).fill(200))
    const others = await Promise.all(Array.from({ length: 20 }, () => putPart(slug, 'other.map', 0, randomBytes(50))))
    expect(others.filter(answer => answer.status === 200)).toHaveLength(1)
    expect(others.filter(answer => answer.status === 409)).toHaveLength(19)
    expect(await framesOf('source-maps', slug)).toHaveLength(2)
  })

  it('counts in the flow of its queue only when it is taken', async () => {
    const slug = await register()
    const { flow } = queueKeys('source-maps')
    const before = (await redis.hmget(flow, 'acceptedPayloads', 'acceptedBytes')).map(Number)
    await putPart(slug, 'a.map', 0, Buffer.from('first'))
    await putPart(slug, 'a.map', 0, Buffer.from('first'))
    await putPart(slug, 'a.map', 0, Buffer.from('other'))
    const after = (await redis.hmget(flow, 'acceptedPayloads', 'acceptedBytes')).map(Number)
    expect(after[0]).toBe((before[0] ?? 0) + 1)
    const [frame] = await framesOf('source-maps', slug)
    expect(after[1]).toBe((before[1] ?? 0) + 1 + 36 + 9 + Buffer.byteLength(frame?.attributes ?? '') + 5)
  })

  it('may come before its release, and with a number up to 4095', async () => {
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

  it('fits with the others into the declared size, else into 64 MiB', async () => {
    const slug = await register()
    await sign(slug, [{ path: 'declared.map', size: 10, hash: 'x' }])
    expect((await putPart(slug, 'declared.map', 0, Buffer.alloc(6))).status).toBe(200)
    expect(await putPart(slug, 'declared.map', 1, Buffer.alloc(5))).toMatchObject(
      refusal(413, 'RELEASE_SIGN_FILE_TOO_LARGE', /declared/),
    )
    expect((await putPart(slug, 'declared.map', 1, Buffer.alloc(4))).status).toBe(200)
    expect((await putPart(slug, 'declared.map', 0, Buffer.alloc(6))).status).toBe(200)

    const { parts } = uploadKeys({ ...PLACE, slug })
    await redis.hset(parts('undeclared.map'), { 0: 'claimed:before', bytes: 64 * MIB - 5 })
    const over = await putPart(slug, 'undeclared.map', 1, Buffer.alloc(6))
    expect(over).toMatchObject(refusal(413, 'RELEASE_SIGN_FILE_TOO_LARGE', /64 MiB/))
    expect((await putPart(slug, 'undeclared.map', 1, Buffer.alloc(5))).status).toBe(200)
  })

  it('of a sealed path is answered again, and no other joins; its claims do not expire', async () => {
    const slug = await register()
    const body = Buffer.from('only')
    await putPart(slug, 'a.map', 0, body)
    const claims = uploadKeys({ ...PLACE, slug }).parts('a.map')
    await redis.hset(claims, 'sealed', '1')
    await redis.persist(claims)
    expect((await putPart(slug, 'a.map', 0, body)).status).toBe(200)
    expect(await putPart(slug, 'a.map', 1, body)).toMatchObject(refusal(409, 'RELEASE_UPLOAD_CONFLICT', /no further/))
    expect(await redis.ttl(claims)).toBe(-1)
    expect(await framesOf('source-maps', slug)).toHaveLength(1)
  })

  it.each([
    ['/etc/passwd', /relative/],
    ['../a.map', /\.\./],
    ['a/../../b.map', /\.\./],
    ['a\\..\\b.map', /separated/],
    ['a\0.map', /NUL/],
    ['', /empty/],
    ['x'.repeat(1_025), /1024 bytes/],
  ])('of the path %j is refused', async (path, message) => {
    const answer = await putPart('rel_x', path, 0, Buffer.from('x'))
    expect(answer).toMatchObject(refusal(400, 'REQUEST_INVALID', message))
  })

  it('needs a number, a path, bytes, and a slug of a release', async () => {
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

describe('a whole map', () => {
  const upload = (slug: string, sent: Sent = {}) =>
    send('PUT', `/v3/releases/${slug}/source-maps/upload?path=a.map`, { body: '{"version":3}', ...sent })

  it('is answered as its worker has judged it', async () => {
    const answer = upload('rel_single-ok')
    const judged = await judge('source-maps', 'rel_single-ok', { ok: true, value: { objectKey: 'k' } })
    expect(await answer).toMatchObject({ status: 200, body: { objectKey: 'k' } })
    expect(judged.attributes).toMatchObject({ kind: 'single', slug: 'rel_single-ok', path: 'a.map' })
    expect(judged.frame).toMatchObject({ ...PLACE, contentType: 'application/json' })
    expect(judged.frame.body.toString()).toBe('{"version":3}')

    const refused = upload('rel_single-bad')
    await judge('source-maps', 'rel_single-bad', { ok: false, code: 'REQUEST_INVALID', message: 'not a source map' })
    expect(await refused).toMatchObject(refusal(400, 'REQUEST_INVALID', /^not a source map$/))
  })

  it('is answered as soon as its verdict is called out', async () => {
    const startedAt = performance.now()
    for (const slug of ['rel_quick-1', 'rel_quick-2', 'rel_quick-3']) {
      const answer = upload(slug)
      await judge('source-maps', slug, { ok: true, value: { objectKey: 'k' } })
      expect((await answer).status).toBe(200)
    }
    // Who waits for the next look takes a second for each.
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  it('is answered although the word of its verdict got lost', async () => {
    const answer = upload('rel_single-quiet')
    await judge('source-maps', 'rel_single-quiet', { ok: true, value: { objectKey: 'k' } }, false)
    expect((await answer).status).toBe(200)
  })

  it('is answered 503 when nobody judges it in time', async () => {
    const answer = await upload('rel_single-late')
    expect(answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE', /still being worked on/))
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  it('is refused with backpressure when too many wait', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => upload('rel_single-many')))
    const codes = answers.map(answer => answer.body.code).sort()
    expect(codes).toEqual([...Array(2).fill('INGEST_BACKPRESSURE'), ...Array(3).fill('INGEST_INFRA_UNAVAILABLE')])
    expect(answers.find(answer => answer.status === 429)?.body.service).toBe('frontier-buildtime')
    expect(await framesOf('source-maps', 'rel_single-many')).toHaveLength(3)
  })

  it('does not wait when it is malformed', async () => {
    const path = '/v3/releases/rel_x/source-maps/upload'
    expect(await send('PUT', `${path}?path=../a`, { body: '{}' })).toMatchObject(refusal(400, 'REQUEST_INVALID'))
    expect(await send('PUT', path, { body: '{}' })).toMatchObject(refusal(400, 'REQUEST_INVALID', /^path is required/))
    expect(await send('PUT', `${path}?path=a`, { body: '{}', type: 'text/plain' })).toMatchObject(
      refusal(415, 'REQUEST_INVALID'),
    )
    const over = await fetch(`${edge.baseUrl}${path}?path=a`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      body: Buffer.alloc(64 * MIB + 1, 0x20),
    })
    expect(over.status).toBe(413)
    expect(await over.json()).toMatchObject({ code: 'RELEASE_SIGN_FILE_TOO_LARGE', service: 'frontier-buildtime' })
  })

  it('of 64 MiB gets into the queue', async () => {
    const body = Buffer.alloc(64 * MIB, 0x20)
    const answer = upload('rel_single-large', { body })
    const { frame } = await judge('source-maps', 'rel_single-large', { ok: true, value: { objectKey: 'k' } })
    expect(frame.body.length).toBe(64 * MIB)
    expect((await answer).status).toBe(200)
    await redis.flushdb()
    secretKey = await issueKey(directory, SECRET)
  })
})

describe('a completion', () => {
  const complete = (slug: string, body: unknown, sent: Sent = {}) =>
    send('POST', `/v3/releases/${slug}/source-maps/complete`, { body, ...sent })
  const record = async (slug: string, body: unknown) => {
    const text = await redis.get(uploadKeys({ ...PLACE, slug }).completion(sha256(JSON.stringify(body))))
    return text === null ? undefined : JSON.parse(text)
  }
  const done: Verdict = { ok: true, value: { ok: true, fileCount: 0 } }
  const body = { files: [], sourceFileCount: 7 }

  it('is answered as its worker has judged it, and has its place in the order', async () => {
    const slug = await register()
    const before = Date.now() * 1_000
    const answer = complete(slug, body)
    const { frame, attributes } = await judge('completions', slug, done)
    expect(await answer).toMatchObject({ status: 200, body: { ok: true, fileCount: 0 } })
    expect(attributes).toEqual({ slug, attempt: expect.any(String), digest: sha256(JSON.stringify(body)) })
    expect(frame.body.toString()).toBe(JSON.stringify(body))
    const { sequence, ...kept } = await record(slug, body)
    expect(kept).toEqual({ attempt: attributes.attempt })
    expect(sequence).toBeGreaterThanOrEqual(before - 1_000_000)
    expect(sequence).toBeLessThan(before + 60_000_000)
  })

  it('sent again while it is worked on waits for the same verdict; once done it is answered at once', async () => {
    const slug = await register()
    const both = [complete(slug, body), complete(slug, body)]
    const { attributes } = await judge('completions', slug, done)
    for (const answer of await Promise.all(both)) expect(answer.body).toEqual({ ok: true, fileCount: 0 })
    expect(await framesOf('completions', slug)).toHaveLength(1)
    const key = uploadKeys({ ...PLACE, slug }).completion(sha256(JSON.stringify(body)))
    await redis.del(verdictKey(attributes.attempt))
    await redis.set(key, JSON.stringify({ ...(await record(slug, body)), fileCount: 5 }), 'EX', DAY_S)
    expect((await complete(slug, body)).body).toEqual({ ok: true, fileCount: 5 })
    expect(await framesOf('completions', slug)).toHaveLength(1)
  })

  it('has a later place than one that was accepted before, also when the clock went back', async () => {
    const slug = await register()
    const future = (Date.now() + 3_600_000) * 1_000
    await redis.set(uploadKeys({ ...PLACE, slug }).sequence, future)
    const others = [1, 2].map(sourceFileCount => ({ files: [], sourceFileCount }))
    for (const other of others) {
      const answer = complete(slug, other)
      await until('it is accepted', () => record(slug, other))
      expect((await answer).status).toBe(503)
    }
    expect((await record(slug, others[0])).sequence).toBe(future + 1)
    expect((await record(slug, others[1])).sequence).toBe(future + 2)
    expect(await redis.ttl(uploadKeys({ ...PLACE, slug }).sequence)).toBeGreaterThan(DAY_S)
  })

  it('of an unknown release, or what is no slug, is told so', async () => {
    for (const slug of ['rel_unheard-of', 'v1', 'rel_%2F..']) {
      expect(await complete(slug, body)).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
      expect(await sign(slug, [])).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
    }
  })

  it('has at most 16 MiB of application/json', async () => {
    const slug = await register()
    const over = await complete(slug, Buffer.alloc(16 * MIB + 1, 0x20))
    expect(over).toMatchObject(refusal(413, 'REQUEST_INVALID', /16 MiB/))
    expect(await complete(slug, body, { type: 'text/plain' })).toMatchObject(refusal(415, 'REQUEST_INVALID'))
    const large = complete(slug, Buffer.alloc(16 * MIB, 0x20))
    const { frame } = await judge('completions', slug, done)
    expect(frame.body.length).toBe(16 * MIB)
    expect((await large).status).toBe(200)
  })
})

describe('a build report', () => {
  const report = (slug: string, body: unknown) => send('POST', `/v3/releases/${slug}/telemetry`, { body })

  it('is put on disk without what is unknown of it', async () => {
    const body = { upload: 12, fileCount: 0, result: 'no_source_maps', preflight: 3 }
    expect(await report('rel_report', { ...body, newer: true })).toMatchObject({ status: 200, body: { ok: true } })
    const [frame] = await framesOf('build-reports', 'rel_report')
    expect(frame).toMatchObject({ ...PLACE, contentType: 'application/json', attributes: '{"slug":"rel_report"}' })
    expect(JSON.parse(frame?.body.toString() ?? '')).toEqual(body)
  })

  it.each<[string, string, unknown, RegExp]>([
    ['nothing', 'rel_x', {}, /at least one field/],
    ['only what is unknown', 'rel_x', { newer: 1 }, /at least one field/],
    ['a negative amount', 'rel_x', { upload: -1 }, /^upload /],
    ['a fraction', 'rel_x', { total: 1.5 }, /^total /],
    ['an unknown result', 'rel_x', { result: 'fine' }, /^result /],
    ['another slug', 'v1', { upload: 1 }, /^releaseSlug /],
  ])('refuses %s', async (_name, slug, body, message) => {
    expect(await report(slug, body)).toMatchObject(refusal(400, 'REQUEST_INVALID', message))
  })
})

describe('backpressure', () => {
  const queued = OPERATIONS.filter(([, , queue]) => queue !== undefined)
  let full: TestEdge
  beforeEach(async () => {
    full = await startEdge(redisUrl, { ...SETTINGS, QUEUE_MAX_PAYLOADS: '100000' })
    return () => full.stop()
  })

  it.each(queued)('%s %s is refused before its body is looked at', async (method, path, queue) => {
    const { flow } = queueKeys(queue as 'completions')
    const slug = await register()
    await redis.hincrby(flow, 'acceptedPayloads', 200_000)
    try {
      const answer = await until('the edge has seen the queue', async () => {
        const current = await send(method, path.replace('rel_x', slug), { body: 'x', type: 'text/csv', of: full })
        return current.status === 429 ? current : undefined
      })
      expect(answer).toMatchObject(refusal(429, 'INGEST_BACKPRESSURE'))
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    } finally {
      await redis.hincrby(flow, 'donePayloads', 200_000)
    }
  })
})

it('a Redis that hangs is answered 503 within a second by every operation, and what is sent again is taken once', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-releases-'))
  const server = await startRedis({ dir, port: await freePort(), log: () => {} })
  const own = connectConsumer(server.url, pino({ level: 'silent' }))
  const key = await issueKey(createDirectory(own), SECRET)
  const of = await startEdge(server.url, { ...SETTINGS, VERDICT_TIMEOUT_MS: '300' })
  try {
    const slug = await register({ key, of })
    const part = (body: string) => putPart(slug, 'a.map', 0, Buffer.from(body), { key, of })
    const requests: [method: string, path: string, body: unknown][] = [
      ['POST', '/v3/releases', { version: '9' }],
      ['POST', `/v3/releases/${slug}/source-maps/sign`, { files: [{ path: 'a.map', size: 4, hash: 'x' }] }],
      ['PUT', `/v3/releases/${slug}/source-maps/upload?path=a.map`, {}],
      ['POST', `/v3/releases/${slug}/source-maps/complete`, {}],
      ['POST', `/v3/releases/${slug}/telemetry`, { upload: 1 }],
    ]
    process.kill(server.pid, 'SIGSTOP')
    const startedAt = performance.now()
    const all = [part('text'), ...requests.map(([method, path, body]) => send(method, path, { key, of, body }))]
    for (const answer of await Promise.all(all)) {
      expect(answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE'))
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    process.kill(server.pid, 'SIGCONT')
    await until('the part is taken', async () => (await part('text')).status === 200)
    expect((await part('else')).status).toBe(409)
    const names = await own.keys(`${queueKeys('source-maps').payloadPrefix}*`)
    const queued = await Promise.all(names.map(name => own.getBuffer(name)))
    const bodies = queued.flatMap(payload => (payload ? decodePayload(payload) : [])).map(frame => String(frame.body))
    expect(bodies.filter(body => body === 'text')).toHaveLength(1)
  } finally {
    process.kill(server.pid, 'SIGCONT')
    await of.stop()
    own.disconnect()
    await server.kill9()
    await rm(dir, { recursive: true, force: true })
  }
})

it('an edge that is about to stop lets nobody wait', async () => {
  const of = await startEdge(redisUrl, SETTINGS)
  const startedAt = performance.now()
  const path = '/v3/releases/rel_stopping/source-maps/upload?path=a.map'
  const answer = send('PUT', path, { body: '{}', of })
  await until('it is in the queue', async () => (await framesOf('source-maps', 'rel_stopping')).length === 1)
  await of.stop()
  expect(await answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE'))
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

it('tells an operator what became of parts, completions and waits', async () => {
  const text = await edge.metrics()
  const count = (line: RegExp) => Number(line.exec(text)?.[1] ?? 0)
  for (const outcome of ['claimed', 'repeated', 'conflict', 'sealed', 'too_large']) {
    expect(
      count(new RegExp(`penstock_source_map_parts_total\\{outcome="${outcome}".*} (\\d+)`)),
      outcome,
    ).toBeGreaterThan(0)
  }
  for (const outcome of ['accepted', 'pending', 'repeated']) {
    expect(count(new RegExp(`penstock_completions_total\\{outcome="${outcome}".*} (\\d+)`)), outcome).toBeGreaterThan(0)
  }
  for (const outcome of ['found', 'not_found']) {
    expect(
      count(new RegExp(`penstock_verdict_wait_seconds_count\\{.*outcome="${outcome}".*} (\\d+)`)),
      outcome,
    ).toBeGreaterThan(0)
  }
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
