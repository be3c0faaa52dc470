import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AuditReport } from '../../../cli/audit/report.ts'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { ADMITTED_QUEUES, type AdmittedQueue } from '../../../schemas/queues/names.ts'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { GIB, HOUR_MS, KIB, MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createHttpServer, type HttpServer } from '../../../shared/http/server/server.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { RawConnection, rawRequest, request } from '../../support/clients/raw-http-client.ts'
import { putWorkspace } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const services = sharedServices()
const redisUrl = `${services.redisUrl}/5`
/** The hour in which requests begin to be counted, and the hour that is audited. */
const firstHour = Math.floor(Date.now() / HOUR_MS - 6) * HOUR_MS
const hour = firstHour + 2 * HOUR_MS
const settings = {
  REDIS_URL: redisUrl,
  DIRECTORY_REDIS_URL: redisUrl,
  CLICKHOUSE_URL: services.clickhouseUrl,
  CLICKHOUSE_DATABASE: `audit_refusals_${process.pid}`,
  ...s3Settings(services.s3),
}

let redis: Redis
let database: TestDatabase
let clickhouse: ClickHouseClient
let edge: TestEdge
/** The routes of the edge on a server that is impatient and has little memory. */
let strict: HttpServer
let strictPort: number
let arrivedAt = firstHour
let slug: string

/** Keys of the surface by what they are for. */
const KEYS = {
  public: {},
  daily: { quotas: { bytesPerDay: 10 } },
  page: { allowedOrigins: ['https://app.example'] },
  secret: { kind: 'secret', scopes: ['release:write'] },
  secretDaily: { kind: 'secret', scopes: ['release:write'], quotas: { bytesPerDay: 10 } },
  scopeless: { kind: 'secret', scopes: [] },
} as const satisfies Record<string, Partial<SurfaceKey>>
type KeyName = keyof typeof KEYS
const keys = new Map<KeyName, string>()

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  database = await createTestDatabase(services.clickhouseUrl, settings.CLICKHOUSE_DATABASE)
  clickhouse = createClickHouse({ url: services.clickhouseUrl, database: database.name })
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  const directory = createDirectory(redis)
  for (const [name, key] of Object.entries(KEYS)) keys.set(name as KeyName, await issueKey(directory, key))
  const logger = pino({ level: 'silent' })
  edge = await startEdge(redisUrl, settings, logger, () => arrivedAt)
  strict = createHttpServer({ routes: edge.routes, logger, heldBodyLimitBytes: 64 * KIB, bodyIdleTimeoutMs: 200 })
  strictPort = await strict.listen('127.0.0.1', 0)
  // Without an accepted request before, no hour is judged.
  expect(await post('public', '/v3/session', '{"sessionId":"s"}')).toBe(200)
  arrivedAt = hour + 1_000
  const answer = await fetch(`${edge.baseUrl}/v3/releases`, {
    method: 'POST',
    headers: { ...credential('secret'), 'content-type': 'application/json' },
    body: '{"version":"1"}',
  })
  slug = ((await answer.json()) as { releaseSlug: string }).releaseSlug
  const files = [{ path: 'small.map', size: 2, hash: 'x' }]
  expect(await post('secret', `/v3/releases/${slug}/source-maps/sign`, JSON.stringify({ files }))).toBe(200)
  await until('three requests are counted', async () => (await counts()).received === 2)
}, 60_000)

afterAll(async () => {
  await strict?.close(0)
  await edge?.stop()
  await clickhouse?.close()
  await database?.drop()
  await redis?.flushdb()
  redis?.disconnect()
})

function credential(key: KeyName): Record<string, string> {
  const text = keys.get(key) ?? ''
  return 'kind' in KEYS[key] ? { authorization: `Bearer ${text}` } : { 'x-service-public-key': text }
}

async function post(
  key: KeyName,
  path: string,
  body: string,
  headers: Record<string, string> = {},
  method = 'POST',
): Promise<number> {
  const all = { 'content-type': 'application/json', ...credential(key), ...headers }
  const response = await fetch(edge.baseUrl + path, { method, headers: all, body })
  await response.arrayBuffer()
  return response.status
}

/** Sends a head and a part of the body that it announces. */
function begin(key: KeyName, path: string, length: number, sent: string, port = edge.port): RawConnection {
  const headers = { 'content-type': 'application/json', ...credential(key), 'content-length': String(length) }
  return new RawConnection(port).send(rawRequest('POST', path, headers)).send(sent)
}

async function statusOf(connection: RawConnection): Promise<number> {
  const { status } = await connection.response()
  connection.socket.destroy()
  return status
}

async function chunked(key: KeyName, path: string, bytes: number): Promise<number> {
  const headers = { 'content-type': 'application/json', ...credential(key), 'transfer-encoding': 'chunked' }
  const head = rawRequest('POST', path, headers)
  return (await request(edge.port, `${head}${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n0\r\n\r\n`)).status
}

/** Returns the counts of the surface and the audited hour in Redis, all queues together or that of one. */
async function counts(queues: readonly AdmittedQueue[] = ADMITTED_QUEUES): Promise<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const queue of queues) {
    for (const [field, requests] of Object.entries(await redis.hgetall(queueKeys(queue).arrivals))) {
      const [at, workspace, surface, outcome = ''] = field.split('/')
      expect([workspace, surface]).toEqual(['ws_1', 'srf_1'])
      if (Number(at) === hour / HOUR_MS) sums[outcome] = (sums[outcome] ?? 0) + Number(requests)
    }
  }
  return sums
}

const release = (path: string) => `/v3/releases/${slug}/${path}`

const announced = (key: KeyName, path: string) => statusOf(begin(key, path, 21 * MIB, ''))
const put = (path: string, body: string, type = 'application/octet-stream') =>
  post('secret', release(path), body, { 'content-type': type }, 'PUT')

async function toFullQueue(): Promise<number> {
  const { flow } = queueKeys('build-reports')
  const bytes = 8 * GIB
  await redis.hincrby(flow, 'acceptedCost', bytes)
  const backlog = new RegExp(`^penstock_queue_cost_bytes\\{[^}]*queue="build-reports"[^}]*\\} ${bytes}$`, 'm')
  await until('the edge has seen the queue', async () => backlog.test(await edge.metrics()))
  const status = await post('secret', release('telemetry'), '[]')
  await redis.hincrby(flow, 'doneCost', bytes)
  return status
}

const REFUSALS: readonly [name: string, queue: AdmittedQueue, status: number, send: () => Promise<number>][] = [
  ['an announced body over the limit', 'traces', 413, () => announced('public', '/drain/v1/traces')],
  ['a chunked body over the limit', 'sessions', 413, () => chunked('public', '/v3/session', 300 * KIB)],
  [
    'a body that stops arriving',
    'sessions',
    408,
    () => statusOf(begin('public', '/v3/session', 50, '{"sessionId"', strictPort)),
  ],
  [
    'a body over the memory of its sender',
    'replay',
    429,
    () => statusOf(begin('public', '/v3/replay/upload/s', 90_000, 'x'.repeat(80_000), strictPort)),
  ],
  ['a quota on the announced length', 'logs', 429, () => post('daily', '/drain/v1/logs', '{"resourceLogs":[]}')],
  ['a quota on the body', 'sessions', 429, () => chunked('daily', '/v3/session/identify', 20)],
  [
    'a foreign origin',
    'metrics',
    403,
    () => post('page', '/drain/v1/metrics', '{}', { origin: 'https://other.example' }),
  ],
  ['an unknown content type', 'metrics', 415, () => post('public', '/drain/v1/metrics', '', { 'content-type': 'a/b' })],
  ['a broken export', 'logs', 400, () => post('public', '/drain/v1/logs', 'no json')],
  ['a heartbeat without a session', 'sessions', 400, () => post('public', '/v3/session', '{}')],
  ['an empty replay chunk', 'replay', 400, () => post('public', '/v3/replay/upload/s', '')],
  ['a secret key without the scope', 'source-maps', 403, () => post('scopeless', '/v3/releases', '{"version":"1"}')],
  ['a quota of a secret key', 'source-maps', 429, () => post('secretDaily', '/v3/releases', '{"version":"1"}')],
  ['a release without a version', 'source-maps', 400, () => post('secret', '/v3/releases', '{}')],
  [
    'a release as text',
    'source-maps',
    415,
    () => post('secret', '/v3/releases', '{"version":"1"}', { 'content-type': 'text/plain' }),
  ],
  ['a release over the limit', 'source-maps', 413, () => announced('secret', '/v3/releases')],
  [
    'a signature for an unknown release',
    'source-maps',
    404,
    () => post('secret', '/v3/releases/rel-unknown/source-maps/sign', '{}'),
  ],
  ['a signature for no files', 'source-maps', 400, () => post('secret', release('source-maps/sign'), '{"files":[]}')],
  ['a part over its declared size', 'source-maps', 413, () => put('source-maps?path=small.map&part=0', 'abc')],
  ['an empty part', 'source-maps', 400, () => put('source-maps?path=small.map&part=0', '')],
  ['a map without a path', 'source-maps', 400, () => put('source-maps/upload', '{}', 'application/json')],
  [
    'a completion of an unknown release',
    'completions',
    404,
    () => post('secret', '/v3/releases/rel-unknown/source-maps/complete', '{}'),
  ],
  [
    'a completion as text',
    'completions',
    415,
    () => post('secret', release('source-maps/complete'), '{}', { 'content-type': 'text/plain' }),
  ],
  ['a build report that breaks the schema', 'build-reports', 400, () => post('secret', release('telemetry'), '[]')],
  ['a request for a full queue', 'build-reports', 429, toFullQueue],
]

it.each(REFUSALS)('counts %s once, for its surface', async (name, queue, status, send) => {
  const [before, all] = [await counts([queue]), await counts()]
  expect(await send()).toBe(status)
  await until('the request is counted', async () => (await counts()).received !== all.received)
  const refused = `refused-${status}`
  const after = { received: (before.received ?? 0) + 1, [refused]: (before[refused] ?? 0) + 1 }
  const overQuota = name.startsWith('a quota') && { 'over-quota': (before['over-quota'] ?? 0) + 1 }
  expect(await counts([queue])).toEqual({ ...before, ...after, ...overQuota })
})

const DONE: readonly [name: string, send: () => Promise<number>][] = [
  ['an empty export', () => post('public', '/drain/v1/traces', '', { 'content-type': 'application/x-protobuf' })],
  ['a replay chunk without metadata', () => post('public', '/v3/replay/upload/s', 'x')],
  ['a release that is registered again', () => post('secret', '/v3/releases', '{"version":"1"}')],
]

it.each(DONE)('counts %s as done', async (_, send) => {
  const before = await counts()
  expect(await send()).toBe(200)
  await until('the request is counted', async () => (await counts()).received !== before.received)
  expect(await counts()).toEqual({ ...before, received: Number(before.received) + 1, done: Number(before.done) + 1 })
})

it('counts no request without a valid key, and none whose client leaves before its body is complete', async () => {
  const before = await counts()
  expect(await post('public', '/v3/session', '{}', { 'x-service-public-key': 'none' })).toBe(401)
  const connection = begin('public', '/v3/session', 50, '{')
  await until('the body arrives', () => connection.socket.bytesWritten > 0)
  connection.socket.destroy()
  expect(await post('public', '/v3/session', '{}')).toBe(400)
  await until('the last one is counted', async () => (await counts()).received !== before.received)
  const refused = Number(before['refused-400']) + 1
  expect(await counts()).toEqual({ ...before, received: Number(before.received) + 1, 'refused-400': refused })
})

async function report(): Promise<AuditReport & { code: number }> {
  const range = ['--from', new Date(hour).toISOString(), '--to', new Date(hour + HOUR_MS).toISOString()]
  const args = [MAIN, 'audit', ...range, '--json']
  const env = { ...settings, PATH: process.env.PATH }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env, cwd: tmpdir() }, (error, stdout, stderr) => {
      if (stderr !== '') reject(new Error(stderr))
      else resolve({ code: Number(error?.code ?? 0), ...(JSON.parse(stdout) as AuditReport) })
    })
  })
}

it('adds up, by status', async () => {
  const { code, requests, differences } = await report()
  expect(differences).toEqual([])
  expect(code).toBe(0)
  const refusedByStatus: Record<string, number> = { 400: 1 }
  for (const [, , status] of REFUSALS) refusedByStatus[status] = (refusedByStatus[status] ?? 0) + 1
  const refused = REFUSALS.length + 1
  const done = DONE.length + 2
  expect(requests).toMatchObject([{ refused, refusedByStatus, done, accepted: 0, received: refused + done }])
  expect(requests[0]?.notJudged).toBeUndefined()
}, 60_000)

it.each([
  ['received', 1, /^1 sessions received without an outcome/],
  ['refused-413', 2, /^1 sessions with an outcome and not received/],
  ['done', 3, /^4 sessions with an outcome and not received/],
] as const)(
  'does not add up when the count of %s requests is changed',
  async (outcome, by, text) => {
    const field = `${hour / HOUR_MS}/ws_1/srf_1/${outcome}`
    await redis.hincrby(queueKeys('sessions').arrivals, field, by)
    const { code, differences } = await report()
    expect(code).toBe(11)
    expect(differences).toMatchObject([{ table: 'requests', surfaceId: 'srf_1', text: expect.stringMatching(text) }])
  },
  60_000,
)
