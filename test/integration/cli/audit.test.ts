import { execFile } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { AuditReport } from '../../../cli/audit/report.ts'
import { runAudit } from '../../../cli/audit/run-audit.ts'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { saveRequestCounts } from '../../../clickhouse/queries/audit/save-request-counts.ts'
import { selectRequestBalance } from '../../../clickhouse/queries/audit/select-request-balance.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import type { ChildProcess } from '../../../deploy/local/processes/child-process.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { INSTALLATION_KEY } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { readWatermarks } from '../../../shared/queue/watermark.ts'
import { encodeReplayMetadata } from '../../support/clients/encode-replay-metadata.ts'
import { clusterSettings, connectDatabase, isCluster } from '../../support/cluster/connect.ts'
import { onOneServer } from '../../support/queue-on.ts'
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
const SURFACES = [
  { workspaceId: 'ws_1', surfaceId: 'srf_1' },
  { workspaceId: 'ws_1', surfaceId: 'srf_2' },
] as const
const settings = {
  REDIS_URL: redisUrl,
  DIRECTORY_REDIS_URL: redisUrl,
  CLICKHOUSE_URL: services.clickhouseUrl,
  ...clusterSettings(services.clickhouseUrl),
  CLICKHOUSE_DATABASE: `audit_${process.pid}`,
  ...s3Settings(services.s3),
}

let redis: Redis
let database: TestDatabase
/** Tests that reach into one server. */
const isShards = isCluster(services.clickhouseUrl)
let clickhouse: ClickHouseClient
let objects: ObjectStore
let edge: TestEdge
let keys: string[]
let arrivedAt = firstHour
let workers: ChildProcess | undefined

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  database = await createTestDatabase(services.clickhouseUrl, settings.CLICKHOUSE_DATABASE)
  clickhouse = connectDatabase(services.clickhouseUrl, database.name)
  objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  // The workers are those of another installation than that of the test before.
  await objects.deleteMany([INSTALLATION_KEY])
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  keys = await Promise.all(SURFACES.map(surface => issueKey(createDirectory(redis), surface)))
  edge = await startEdge(redisUrl, {}, pino({ level: 'silent' }), () => arrivedAt)
}, 60_000)

afterAll(async () => {
  await workers?.kill9()
  await edge?.stop()
  objects?.close()
  await clickhouse?.close()
  await database?.drop()
  await redis?.flushdb()
  redis?.disconnect()
})

async function startWorkers(): Promise<ChildProcess> {
  const port = await freePort()
  const env = { ...settings, PATH: process.env.PATH, WORKERS_ADMIN_PORT: String(port), LOG_LEVEL: 'fatal' }
  const adminUrl = `http://127.0.0.1:${port}`
  return startNodeProcess({
    script: 'workers/main.ts',
    env,
    adminUrl,
    log: () => {},
    signal: new AbortController().signal,
  })
}

async function send(path: string, key: string, body: string, headers: Record<string, string> = {}): Promise<number> {
  const all = { 'content-type': 'application/json', 'x-service-public-key': key, ...headers }
  const response = await fetch(edge.baseUrl + path, { method: 'POST', headers: all, body })
  await response.arrayBuffer()
  return response.status
}

const exceptionEvent = {
  name: 'exception',
  timeUnixNano: '1790000000000000000',
  attributes: [{ key: 'exception.type', value: { stringValue: 'Error' } }],
}
const span = (i: number) => ({
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: i.toString(16).padStart(16, '1'),
  name: 'audited',
  startTimeUnixNano: '1790000000000000000',
  endTimeUnixNano: '1790000000000000001',
  events: i % 2 === 0 ? [exceptionEvent] : [],
})
const log = { timeUnixNano: '1790000000000000000', body: { stringValue: 'line' } }
const point = { timeUnixNano: '1790000000000000000', asInt: '1' }

/** Sends requests of every kind, all of which are accepted. Returns their number. */
async function sendAll(key: string, run: number): Promise<number> {
  const requests: [path: string, body: string, headers?: Record<string, string>][] = [
    ['/drain/v1/traces', JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span(run), span(run + 1)] }] }] })],
    ['/drain/v1/logs', JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [log, log, log] }] }] })],
    [
      '/drain/v1/metrics',
      JSON.stringify({
        resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'm', gauge: { dataPoints: [point] } }] }] }],
      }),
    ],
    ['/drain/v1/traces', '{"broken'],
    ['/v3/session', JSON.stringify({ sessionId: `s${run}` })],
    [
      '/v3/session/identify',
      JSON.stringify({ sessionId: `s${run}`, identifier: 'i', source: { type: 'custom', name: 'n' } }),
    ],
    [
      `/v3/replay/upload/s${run}`,
      '{"type":2,"timestamp":1700000000000}\n',
      {
        'content-type': 'application/octet-stream',
        'x-replay-metadata': encodeReplayMetadata({ windowId: 'w', segmentId: 0, firstTs: 1, lastTs: 2 }),
      },
    ],
  ]
  const statuses = await Promise.all(requests.map(([path, body, headers]) => send(path, key, body, headers)))
  expect(statuses).toEqual(requests.map(() => 200))
  return requests.length
}

async function untilSettled(): Promise<void> {
  await until(
    'everything is settled',
    async () => {
      const { readAtMs, surfaces } = await readWatermarks(onOneServer(redis), SURFACES)
      return surfaces.every(({ unfinishedSinceMs }) =>
        Object.entries(unfinishedSinceMs).every(([queue, since]) => queue === 'symbolication' || since === readAtMs),
      )
    },
    { deadlineMs: 60_000 },
  )
}

interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function audit(...words: string[]): Promise<Run> {
  const range = ['--from', new Date(firstHour).toISOString(), '--to', new Date(hour + HOUR_MS).toISOString()]
  return cli('audit', ...range, ...words)
}

function cli(...words: string[]): Promise<Run> {
  const env = { ...settings, PATH: process.env.PATH }
  return new Promise(resolve => {
    const args = [MAIN, ...words]
    execFile(process.execPath, args, { env, cwd: tmpdir() }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr })
    })
  })
}

async function report(): Promise<AuditReport & { code: number }> {
  const { code, stdout, stderr } = await audit('--json')
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as AuditReport) }
}

const hourText = `${new Date(hour).toISOString().slice(0, 16)}Z`
const partition = hourText.slice(0, 10)
const differenceIn = (table: string, surfaceId: string, text: unknown) => ({
  table,
  workspaceId: 'ws_1',
  surfaceId,
  hour: hourText,
  day: partition,
  text,
})

let sent = 0

it('adds up after workers were killed while they stored the requests of the hour', async () => {
  for (const key of keys) await sendAll(key, 1)
  arrivedAt = hour + 1_000
  for (let run = 0; run < 12; run++) {
    if (run % 4 === 0) {
      await workers?.kill9()
      workers = await startWorkers()
    }
    sent += await sendAll(keys[0] as string, 100 + 2 * run)
    await sendAll(keys[1] as string, 200 + 2 * run)
  }
  expect(await send('/drain/v1/logs', keys[0] as string, 'no json')).toBe(400)
  await workers?.kill9()
  workers = await startWorkers()
  await untilSettled()

  const { code, requests, tables, objects: named, differences } = await report()
  expect(differences).toEqual([])
  expect(code).toBe(0)
  const line = requests.find(found => found.hour === hourText && found.surfaceId === 'srf_1')
  expect(line).toMatchObject({ accepted: sent, deadLettered: 12, stored: sent - 12, queued: 0 })
  expect(line?.notJudged).toBeUndefined()
  expect(line).toMatchObject({ received: sent + 1, refused: 1, refusedByStatus: { 400: 1 }, acknowledged: sent })
  const rows = Object.fromEntries(tables.map(({ table, present }) => [table, present]))
  expect(rows).toMatchObject({ spans: 52, logs: 78, exceptions: 26, session_identities: 26, replay_chunks: 26 })
  expect(named).toEqual({ named: expect.any(Number), missing: 0 })
  expect(named.named).toBeGreaterThanOrEqual(28)
}, 120_000)

it('states which hours were judged, and claims nothing of the others', async () => {
  const { code, stdout } = await audit()
  expect(code).toBe(0)
  const first = `${new Date(firstHour).toISOString().slice(0, 16)}Z`
  expect(stdout.trim().split('\n').slice(-3)).toEqual([
    'everything that was judged adds up',
    `judged: 2 lines of 1 hour, ${hourText}`,
    `not judged: 2 lines of 1 hour, ${first}: requests were not counted then, or not the whole hour`,
  ])
  const rangeOf = (from: number) => [
    ...['--from', new Date(from).toISOString()],
    ...['--to', new Date(from + HOUR_MS).toISOString()],
  ]
  const judged = await cli('audit', ...rangeOf(hour))
  expect(judged).toMatchObject({ code: 0, stdout: expect.stringMatching(/\neverything adds up\njudged: 2 lines/) })
  for (const from of [firstHour, firstHour + HOUR_MS]) {
    const none = await cli('audit', ...rangeOf(from))
    expect(none).toMatchObject({ code: 14, stdout: expect.stringMatching(/\nnothing was judged\nnot judged: /) })
  }
}, 60_000)

it('shows requests that are queued, and judges their hour when they are settled', async () => {
  await workers?.kill9()
  workers = undefined
  await send('/drain/v1/logs', keys[0] as string, JSON.stringify({ resourceLogs: [] }))
  sent++
  // Redis has accepted it now, and not in the hour of its arrival, which the test has chosen.
  const { pending, busy } = queueKeys('logs')
  const [jobId] = await redis.zrange(pending, 0, '0')
  await redis.zadd(pending, hour + 1_000, jobId ?? '')
  await redis.hset(busy, 'ws_1/srf_1', hour + 1_000)
  const { differences, requests } = await report()
  expect(differences).toEqual([])
  const line = requests.find(found => found.hour === hourText && found.surfaceId === 'srf_1')
  expect(line).toMatchObject({ accepted: sent, queued: 1, notJudged: 'unsettled' })
  workers = await startWorkers()
  await untilSettled()
  const after = await report()
  expect(after.differences).toEqual([])
  const judged = after.requests.find(found => found.hour === hourText && found.surfaceId === 'srf_1')
  expect(judged).toMatchObject({ queued: 0 })
  expect(judged?.notJudged).toBeUndefined()
}, 60_000)

it('does not report a session that was deleted', async () => {
  const words = ['sessions', 'delete', '--workspace', 'acme', '--session', 's200']
  expect((await cli(...words)).code).toBe(0)
  expect((await report()).differences).toEqual([])
}, 60_000)

it('counts rows that were deleted on purpose, and no others', async () => {
  const where = `surface_id = 'srf_2' AND received_at >= ${hour / 1_000} AND span_id = unhex('11111111111111c8')`
  await clickhouse.command({ query: `DELETE FROM spans WHERE ${where}`, clickhouse_settings: { mutations_sync: '2' } })
  expect((await report()).differences).toMatchObject([
    differenceIn('spans', 'srf_2', expect.stringMatching(/^1 row missing/)),
  ])
  await clickhouse.command({
    query: `INSERT INTO deleted_rows (workspace_id, surface_id, received_hour, table_name, reason, rows)
      VALUES ('ws_1', 'srf_2', ${hour / 1_000}, 'spans', 'erased', 1)`,
  })
  expect((await report()).differences).toEqual([])
}, 60_000)

it('fails when ClickHouse does not answer a query in time', async () => {
  const silent = createServer(socket => socket.resume())
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  const unanswered = createClickHouse({ url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` })
  // No counts have this prefix, so that a query is the first request.
  const emptyRedis = redis.duplicate({ keyPrefix: 'unanswered:' })
  const deps = { queues: onOneServer(emptyRedis), losses: [], clickhouse: unanswered, objects, now: Date.now }
  const range = { from: hour / 1_000, to: (hour + HOUR_MS) / 1_000, workspaceId: '', queryTimeoutMs: 100 }
  try {
    await expect(runAudit(deps, range)).rejects.toThrow('ClickHouse did not respond in time')
  } finally {
    emptyRedis.disconnect()
    await unanswered.close()
    silent.close()
  }
}, 10_000)

it.skipIf(isShards)(
  'reports no difference of a request whose counts were copied only in part',
  async () => {
    const count = (outcome: string) =>
      redis.hincrby(queueKeys('traces').arrivals, `${hour / HOUR_MS}/ws_1/srf_1/${outcome}`, 1)
    await count('done')
    const insert: ClickHouseClient['insert'] = clickhouse.insert.bind(clickhouse)
    // The counts of traces are the first to be copied.
    const copied = vi.spyOn(clickhouse, 'insert').mockImplementationOnce(async params => {
      const result = await insert(params)
      await count('received')
      return result
    })
    const range = { from: firstHour / 1_000, to: (hour + HOUR_MS) / 1_000, workspaceId: '' }
    const { differences } = await runAudit(
      { queues: onOneServer(redis), losses: [], clickhouse, objects, now: Date.now },
      range,
    )
    copied.mockRestore()
    const traces = await selectRequestBalance(clickhouse, { ...range, signal: AbortSignal.timeout(30_000) })
    expect(traces.find(found => found.kind === 'traces' && found.done > 0)).toMatchObject({ done: 1 })
    expect(differences).toEqual([])
  },
  60_000,
)

it.skipIf(isShards)(
  'finds a row too many, a dropped part, a deleted object, a lost payload and a false acknowledgement, each with table, surface and hour',
  async () => {
    await clickhouse.command({
      query: `INSERT INTO logs SELECT * FROM logs WHERE surface_id = 'srf_1' AND received_at >= ${hour / 1_000} LIMIT 1`,
      clickhouse_settings: { insert_deduplicate: 0 },
    })
    await clickhouse.command({ query: 'OPTIMIZE TABLE session_heartbeats FINAL' })
    const parts = await database.rows<{ name: string; rows: string }>(
      `SELECT name, rows FROM system.parts WHERE database = currentDatabase() AND table = 'session_heartbeats' AND active`,
    )
    for (const { name } of parts)
      await clickhouse.command({ query: `ALTER TABLE session_heartbeats DROP PART '${name}'` })
    const [chunk] = await database.rows<{ key: string }>(
      `SELECT object_key AS key FROM replay_chunks WHERE surface_id = 'srf_2' AND received_at >= ${hour / 1_000} LIMIT 1`,
    )
    await objects.deleteMany([chunk?.key ?? ''])
    await workers?.kill9()
    workers = undefined
    await send('/drain/v1/metrics', keys[1] as string, JSON.stringify({ resourceMetrics: [] }))
    const { pending, shares, payload } = queueKeys('metrics')
    const [jobId] = await redis.zrange(pending, 0, '0')
    await redis.del(payload(jobId ?? ''), pending, shares)

    await redis.hincrby(queueKeys('sessions').arrivals, `${hour / HOUR_MS}/ws_1/srf_1/acknowledged`, 1)

    const { code, differences } = await report()
    expect(code).toBe(11)
    expect(differences).toMatchObject([
      differenceIn('requests', 'srf_1', expect.stringMatching(/^1 sessions with an outcome and not received/)),
      differenceIn('requests', 'srf_1', '1 sessions acknowledged and not accepted (25 against 24)'),
      differenceIn('requests', 'srf_2', '1 metrics lost (13 accepted, 12 settled)'),
      differenceIn('logs', 'srf_1', expect.stringMatching(/^1 row too many/)),
      differenceIn('session_heartbeats', 'srf_1', expect.stringMatching(/^12 rows missing/)),
      differenceIn('session_heartbeats', 'srf_2', expect.stringMatching(/^11 rows missing/)),
      differenceIn('replay_chunks', 'srf_2', `object missing: ${chunk?.key}`),
    ])
    const text = await audit('--workspace', 'acme')
    expect(text.code).toBe(11)
    expect(text.stdout).toContain(`logs: surface srf_1 of ws_1, hour ${hourText}, day ${partition}: 1 row too many`)
    expect((await audit('--workspace', 'nobody')).code).toBe(3)
  },
  60_000,
)

it('keeps the counts of an hour when they have left Redis', async () => {
  const before = (await report()).requests
  await saveRequestCounts(onOneServer(redis), clickhouse, Date.now() + 24 * HOUR_MS)
  await saveRequestCounts(onOneServer(redis), clickhouse, Date.now() + 24 * HOUR_MS)
  expect(await redis.hlen(queueKeys('traces').arrivals)).toBe(0)
  expect((await report()).requests).toEqual(before)
}, 60_000)
