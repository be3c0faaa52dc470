import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { selectReceipt } from '../../../clickhouse/queries/receipts/select-receipt.ts'
import { type Receipt, receiptAnswerSchema } from '../../../schemas/http/receipts/schemas.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { readReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { newCommit, openReceiptId, receiptIds, receiptSeal } from '../../../shared/ids/receipt.ts'
import { createObjectStore, type ObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { encodeReplayMetadata } from '../../support/clients/encode-replay-metadata.ts'
import { namedReceipts, receiptName } from '../../support/clients/named-receipts.ts'
import { digestOf, entryOf, mapOf } from '../../support/clients/release-client.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { startCountingProxy } from '../../support/services/counting-proxy.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = inject('services')
const redisUrl = `${services.redisUrl}/4`
const workspaceId = newId('ws')
const surfaceId = newId('srf')
const slug = `acme-${randomBytes(4).toString('hex')}`
const { s3 } = services
const objectStore = {
  S3_ENDPOINT: s3.endpoint,
  S3_BUCKET: s3.bucket,
  AWS_ACCESS_KEY_ID: s3.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
}

let redis: Redis
let database: TestDatabase
let clickhouse: ClickHouseClient
let objects: ObjectStore
let edge: TestEdge
let api: TestApi
let pools: TestPools | undefined
let publicKey: string
let secretKey: string
let token: string
let release: string

beforeAll(async () => {
  redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  database = await createTestDatabase(services.clickhouseUrl, `receipts_${process.pid}`)
  const connection = { url: services.clickhouseUrl, user: 'default', password: '' }
  clickhouse = createClickHouse({ ...connection, database: database.name })
  // What ClickHouse refuses for its content, in a table that other tables come before.
  const constraint = "ALTER TABLE spans ADD CONSTRAINT no_poison CHECK name != 'poison'"
  await clickhouse.command({ query: constraint })
  objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  edge = await startEdge(redisUrl, objectStore)
  api = await startApi({ ...services, redisUrl }, database.name, objectStore)
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  const directory = createDirectory(redis)
  publicKey = await issueKey(directory, { workspaceId, surfaceId })
  secretKey = await issueKey(directory, { kind: 'secret', scopes: ['release:write'], workspaceId, surfaceId })
  token = await signToken({ org: slug })
  const registered = await build('POST /v3/releases', '{"version":"1"}')
  release = (registered.body as { releaseSlug: string }).releaseSlug
})

afterAll(async () => {
  await pools?.stop()
  await api?.stop()
  await edge?.stop()
  objects?.close()
  await clickhouse?.close()
  await database?.drop()
  redis?.disconnect()
})

function startWorkers(): void {
  pools ??= startPools(QUEUES, { ...services, redisUrl }, database.name)
}

interface Sent {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly receiptId: string | null
}

async function send(operation: string, body: Uint8Array | string, headers: Record<string, string>): Promise<Sent> {
  const [method = '', path = ''] = operation.split(' ')
  const init = { method, headers, body: typeof body === 'string' ? body : new Uint8Array(body) }
  const response = await fetch(edge.baseUrl + path, init)
  const text = await response.text()
  const answer = response.headers.get('content-type') === 'application/json' ? JSON.parse(text) : text
  const receiptId = response.headers.get('x-receipt-id')
  return { status: response.status, headers: response.headers, body: answer, receiptId }
}

const JSON_TYPE = 'application/json'
const browse = (operation: string, body: Uint8Array | string, headers: Record<string, string> = {}) =>
  send(operation, body, { 'x-service-public-key': publicKey, 'content-type': JSON_TYPE, ...headers })
const build = (operation: string, body: Uint8Array | string, type = JSON_TYPE) =>
  send(operation, body, { authorization: `Bearer ${secretKey}`, 'content-type': type })

function span(name: string): string {
  const ids = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') }
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...ids, name }] }] }] })
}

const LINE = '{"type":2,"timestamp":1700000000000}\n'
function uploadChunk(segmentId: number, body = LINE) {
  const metadata = encodeReplayMetadata({ windowId: 'w', segmentId, firstTs: 1, lastTs: 2 })
  const headers = { 'content-type': 'application/octet-stream', 'x-replay-metadata': metadata }
  return browse('POST /v3/replay/upload/session-1', body, headers)
}

type Credential = { bearer: string } | { headers: Record<string, string> }
const ask = (id: string | null, credential: Credential = { headers: { 'x-service-public-key': publicKey } }) =>
  call(api.baseUrl, `GET /v3/receipts/${id}`, credential)

async function receiptOf({ status, receiptId }: Sent, credential?: Credential): Promise<Receipt> {
  expect({ status, receiptId }).toEqual({ status: 200, receiptId: expect.stringMatching(/^rct_/) })
  const answer = await ask(receiptId, credential)
  expect(answer).toMatchObject({ status: 200 })
  const { receipt } = receiptAnswerSchema.parse(answer.body)
  expect(receipt).toMatchObject({ id: receiptId, surfaceId })
  return receipt
}

/** What the service says of it once it has left the queue. */
async function settled({ receiptId }: Pick<Sent, 'receiptId'>): Promise<Receipt> {
  startWorkers()
  return until(`${receiptId} is settled`, async () => {
    const { receipt } = receiptAnswerSchema.parse((await ask(receiptId)).body)
    return receipt.status === 'queued' ? undefined : receipt
  })
}

describe('an accepted request', () => {
  it('is queued while no worker takes it, then stored, for its keys and for the workspace', async () => {
    const before = Date.now()
    const sent = await browse('POST /drain/v1/traces', span('first'))
    const secret = { bearer: secretKey }
    for (const credential of [undefined, secret, { bearer: token }]) {
      const receipt = await receiptOf(sent, credential)
      expect(receipt).toMatchObject({ status: 'queued', kind: 'traces' })
      expect(receipt.storedAt).toBeUndefined()
      expect(Math.abs(Date.parse(receipt.receivedAt) - before)).toBeLessThan(5_000)
    }
    const stored = await settled(sent)
    expect(stored).toMatchObject({ status: 'stored', kind: 'traces' })
    expect(Date.parse(stored.storedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(stored.receivedAt))
    for (const credential of [secret, { bearer: token }]) expect(await receiptOf(sent, credential)).toEqual(stored)
    const byQuery = await call(api.baseUrl, `GET /v3/receipts/${sent.receiptId}?public_key=${publicKey}`)
    expect(byQuery.body).toEqual({ receipt: stored })
  })

  it('has a receipt from every operation that enqueues, and is stored', async () => {
    startWorkers()
    const maps = `/v3/releases/${release}/source-maps`
    const map = mapOf('a')
    const octets = 'application/octet-stream'
    const sent: [kind: string, answer: Sent][] = [
      ['traces', await browse('POST /drain/v1/traces', span('a'))],
      ['logs', await browse('POST /drain/v1/logs', '{"resourceLogs":[]}')],
      ['metrics', await browse('POST /drain/v1/metrics', '{"resourceMetrics":[]}')],
      [
        'sessions',
        await browse(
          'POST /v3/session/identify',
          '{"sessionId":"s","identifier":"i","source":{"type":"custom","name":"n"}}',
        ),
      ],
      ['sessions', await browse('POST /v3/session', '{"sessionId":"s"}')],
      ['replay', await uploadChunk(0)],
      ['source-maps', await build(`PUT ${maps}?path=a.map&part=0`, map, octets)],
      ['source-maps', await build(`PUT ${maps}/upload?path=b.map`, map)],
      ['build-reports', await build(`POST /v3/releases/${release}/telemetry`, '{"upload":1}')],
    ]
    const files = ['a.map', 'b.map'].map(path => entryOf({ path, bytes: map }))
    const completion = JSON.stringify({ files, sourceFileCount: 1 })
    const complete = () => build(`POST ${maps}/complete`, completion)
    sent.push(['completions', await complete()])
    for (const [kind, answer] of sent) {
      expect(await receiptOf(answer)).toMatchObject({ kind })
      expect(await settled(answer)).toMatchObject({ kind, status: 'stored' })
    }
    expect(new Set(sent.map(([, { receiptId }]) => receiptId)).size).toBe(sent.length)

    // What is not enqueued has none.
    const without = [
      await complete(),
      await build(`PUT ${maps}?path=a.map&part=0`, map, octets),
      await browse('POST /v3/replay/upload/session-1', LINE),
      await browse('POST /drain/v1/traces', '', { 'content-type': 'application/x-protobuf' }),
      await build(`POST ${maps}/sign`, JSON.stringify({ files: [{ path: 'c', size: 1, hash: digestOf(map) }] })),
    ]
    for (const { status, receiptId } of without) expect({ status, receiptId }).toEqual({ status: 200, receiptId: null })
  })

  it('shows its receipt to pages of any origin', async () => {
    const headers = { origin: 'https://shop.example' }
    const sent = await browse('POST /v3/session', '{"sessionId":"s"}', headers)
    expect(sent.headers.get('access-control-expose-headers')).toBe('Retry-After, x-receipt-id')
    const answer = await ask(sent.receiptId, { headers: { ...headers, 'x-service-public-key': publicKey } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.example')
  })

  it('is in one row of the log, with its neighbours in the commit, whatever the order', async () => {
    startWorkers()
    const sent = await Promise.all(Array.from({ length: 60 }, (_, i) => browse('POST /drain/v1/traces', span(`${i}`))))
    const receipts = await Promise.all(sent.map(settled))
    expect(receipts.every(({ status }) => status === 'stored')).toBe(true)
    await expectOneRowEach(sent)
  })
})

/** And so has everything that was sent before. */
async function expectOneRowEach(sent: readonly Sent[]): Promise<void> {
  const named = await namedReceipts(database.rows)
  expect(sent.filter(({ receiptId }) => !named.has(receiptName(receiptId ?? '')))).toEqual([])
  expect([...named].filter(([, count]) => count !== 1)).toEqual([])
}

describe('a request that cannot be stored', () => {
  it('is dead-lettered with its reason, and kept where the receipt says', async () => {
    const body = gzipSync(Buffer.from([0x0a, 0x04, 0x12, 0x7f, 1, 2]))
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }
    const receipt = await settled(await browse('POST /drain/v1/traces', body, headers))
    expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'truncated' })
    expect(receipt.storedAt).toBeUndefined()
    const kept = await until('it is kept', () => objects.get(receipt.objectKey ?? '', 1_000))
    expect(kept.body.equals(body)).toBe(true)
  })

  it('is told apart from its neighbours in a batch that ClickHouse refuses', async () => {
    await pools?.stop()
    pools = undefined
    const names = Array.from({ length: 24 }, (_, i) => (i === 11 ? 'poison' : `good ${i}`))
    const sent = await Promise.all(names.map(name => browse('POST /drain/v1/traces', span(name))))
    const receipts = await Promise.all(sent.map(settled))
    for (const [i, receipt] of receipts.entries()) {
      if (names[i] !== 'poison') expect(receipt).toMatchObject({ status: 'stored' })
      // What ClickHouse said is for its operators.
      else expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'refused_by_clickhouse' })
    }
    const [stored] = await database.rows<{ n: number }>("SELECT count() AS n FROM spans WHERE name LIKE 'good %'")
    expect(Number(stored?.n)).toBe(23)
    await expectOneRowEach(sent)
  })

  it('is dead-lettered as a replay chunk in conflict with another; a repeated one is stored', async () => {
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    const conflict = await settled(await uploadChunk(7, LINE + LINE))
    expect(conflict).toMatchObject({ status: 'dead_lettered', reason: expect.stringMatching(/^replay_conflict: /) })
    const kept = await until('it is kept', () => objects.get(conflict.objectKey ?? '', 1_000))
    expect(kept.body.toString()).toBe(LINE + LINE)
  })

  it('is refused where its answer said so: nothing of it is kept', async () => {
    startWorkers()
    const maps = `/v3/releases/${release}/source-maps`
    const noMap = await build(`PUT ${maps}/upload?path=c.map`, '{"version":2}')
    const files = [entryOf({ path: 'never sent', bytes: mapOf('x') })]
    const incomplete = await build(`POST ${maps}/complete`, JSON.stringify({ files, sourceFileCount: 1 }))
    for (const answer of [noMap, incomplete]) {
      expect(answer.status).toBe(400)
      const { message } = answer.body as { message: string }
      const receipt = await settled(answer)
      expect(receipt).toMatchObject({ status: 'refused', reason: `REQUEST_INVALID: ${message}` })
      expect(receipt.objectKey).toBeUndefined()
    }
  })
})

describe('what is no receipt of the caller is not found, in the same words', () => {
  it.each(['public', 'secret', 'token'])('for a %s credential', async kind => {
    const directory = createDirectory(redis)
    const other = { id: newId('ws'), slug: `other-${randomBytes(4).toString('hex')}` }
    await putWorkspace(redisUrl, other)
    const key = { kind: 'secret' as const, scopes: ['release:write'] }
    const keysOf = async (place: { workspaceId: string; surfaceId: string }) => ({
      public: { headers: { 'x-service-public-key': await issueKey(directory, place) } },
      secret: { bearer: await issueKey(directory, { ...key, ...place }) },
    })
    const own = {
      public: { headers: { 'x-service-public-key': publicKey } },
      secret: { bearer: secretKey },
      token: { bearer: token },
    }
    const sibling = await keysOf({ workspaceId, surfaceId: newId('srf') })
    const foreign = {
      ...(await keysOf({ workspaceId: other.id, surfaceId })),
      token: { bearer: await signToken({ org: other.slug }) },
    }
    const { receiptId } = await browse('POST /v3/session', '{"sessionId":"s"}')
    const id = receiptId ?? ''
    const as = kind as keyof typeof own
    expect((await ask(id, own[as])).status).toBe(200)

    const secret = (await readReceiptSecret(redis)) ?? randomBytes(32)
    const opened = openReceiptId(secret, workspaceId, id)
    expect(opened).toMatchObject({ surfaceId, kind: 'sessions' })
    const long = newCommit('sessions', Date.now() - 31 * 24 * 60 * 60 * 1_000)
    const place = { workspaceId, surfaceId }
    const expired = receiptIds(long)(0, receiptSeal(secret, place))
    const forged = receiptIds(opened?.commit ?? long)(0, receiptSeal(randomBytes(32), place))
    const nothing = await ask('rct_x', own[as])
    expect(nothing).toMatchObject({ status: 404, body: { code: 'NOT_FOUND', service: 'gateway' } })
    const answers = [
      await ask(id, foreign[as]),
      ...(as === 'token' ? [] : [await ask(id, sibling[as])]),
      await ask(expired, own[as]),
      await ask(forged, own[as]),
      await ask(id.slice(0, -1), own[as]),
      await ask(id.toUpperCase(), own[as]),
      await ask('%00', own[as]),
    ]
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 404, body: nothing.body })
  })
})

describe('who may ask', () => {
  const id = 'rct_x'
  it.each<[string, Credential, number, string]>([
    ['nobody', { headers: {} }, 401, 'AUTH_MISSING'],
    ['an unknown public key', { headers: { 'x-service-public-key': generateKey('public') } }, 401, 'AUTH_PK_INVALID'],
    ['a secret key as a public one', { headers: { 'x-service-public-key': 'sk_1' } }, 401, 'AUTH_PK_INVALID'],
    ['an unknown secret key', { bearer: generateKey('secret') }, 401, 'AUTH_MISSING'],
    ['a workspace key', { bearer: generateKey('workspace') }, 401, 'AUTH_MISSING'],
    ['a malformed token', { bearer: 'ey.ey.ey' }, 401, 'AUTH_MISSING'],
  ])('not %s', async (_, credential, status, code) => {
    expect(await ask(id, credential)).toMatchObject({ status, body: { code, service: 'frontier-auth' } })
  })

  it('not a key that was revoked a moment ago', async () => {
    const directory = createDirectory(redis)
    const keyId = newId('key')
    const headers = { 'x-service-public-key': await issueKey(directory, { id: keyId, workspaceId, surfaceId }) }
    expect((await ask(id, { headers })).status).toBe(404)
    await directory.revokeSurfaceKey(workspaceId, surfaceId, keyId, Date.now())
    expect(await ask(id, { headers })).toMatchObject({ status: 401, body: { code: 'AUTH_PK_INVALID' } })
  })

  it('a member who may read anything, and no other', async () => {
    const bearer = await signToken({ org: slug, sub: 'reader' })
    const statusWith = async (permissions: (typeof PERMISSIONS)[number][]) => {
      await createDirectory(redis).putMember({ version: 1, workspaceId, userId: 'reader', permissions })
      return (await ask(id, { bearer })).status
    }
    expect(await statusWith(PERMISSIONS.filter(permission => !permission.endsWith(':read')))).toBe(403)
    for (const permission of PERMISSIONS.filter(name => name.endsWith(':read'))) {
      expect(await statusWith([permission])).toBe(404)
    }
  })
})

it('while ClickHouse or the directory is away, the answer is 503', async () => {
  const { receiptId } = await browse('POST /v3/session', '{"sessionId":"s"}')
  for (const away of ['clickhouse', 'redis'] as const) {
    const proxy = await startCountingProxy(away === 'redis' ? redisUrl : services.clickhouseUrl)
    const place = away === 'redis' ? { redisUrl: proxy.url } : { clickhouseUrl: proxy.url }
    const cutOff = await startApi({ ...services, redisUrl, ...place }, database.name, objectStore)
    const headers = { 'x-service-public-key': publicKey }
    const asked = () => call(cutOff.baseUrl, `GET /v3/receipts/${receiptId}`, { headers })
    expect((await asked()).status).toBe(200)
    await proxy.close()
    const answer = await asked()
    expect({ away, ...answer }).toMatchObject({
      status: 503,
      body: { code: 'INGEST_INFRA_UNAVAILABLE', service: 'frontier-runtime' },
    })
    expect(answer.headers.get('retry-after')).toBe('5')
    await cutOff.stop()
  }
})

it('a receipt is found among millions of rows by reading some thousands', async () => {
  const busy = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  const noon = new Date().setUTCHours(12, 0, 0, 0) - 24 * 60 * 60 * 1_000
  const commit = newCommit('traces', noon)
  await clickhouse.command({
    query: `
      INSERT INTO ingest_log (workspace_id, surface_id, received_at, job_id, signal, receipt_commit, receipt_indexes)
      SELECT {workspaceId: String}, {surfaceId: String}, fromUnixTimestamp64Milli(toInt64({noon: UInt64} + (number - 1000000) * 10)),
        toString(number), 'traces', if(number = 1000003, unhex({commit: String}), randomString(12)), [0, 1, 2]
      FROM numbers(2000000)`,
    query_params: { ...busy, noon, commit: commit.toString('hex') },
  })
  const reads: number[] = []
  const counting = {
    async query(options: Parameters<ClickHouseClient['query']>[0]) {
      const result = await clickhouse.query(options)
      const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as { read_rows: string }
      reads.push(Number(summary.read_rows))
      return result
    },
  } as ClickHouseClient
  const signal = AbortSignal.timeout(10_000)
  const key = { ...busy, commit, arrivedAtMs: noon }
  expect(await selectReceipt(counting, { ...key, index: 2 }, signal)).toMatchObject({ reason: '', objectKey: '' })
  expect(await selectReceipt(counting, { ...key, index: 3 }, signal)).toBeUndefined()
  expect(reads).toHaveLength(2)
  for (const rows of reads) expect(rows).toBeLessThan(50_000)
  expect(Math.min(...reads)).toBeGreaterThan(0)
})
