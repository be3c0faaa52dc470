import { create, toBinary } from '@bufbuild/protobuf'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { BURNED_PREFIX } from '../../../clickhouse/burn-token.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { tableOfUnit } from '../../../clickhouse/cluster/shard-units.ts'
import { AUDITED_TABLES } from '../../../clickhouse/queries/audit/audited-tables.ts'
import { selectRequestBalance } from '../../../clickhouse/queries/audit/select-request-balance.ts'
import { selectRowBalance } from '../../../clickhouse/queries/audit/select-row-balance.ts'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { DAY_MS, MIB } from '../../../schemas/units.ts'
import { decodePayload, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer, connectProducer } from '../../../shared/queue/redis.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { createExceptionsBatch } from '../../../workers/exceptions/exceptions-batch.ts'
import { createLogsBatch } from '../../../workers/otlp/logs/logs.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { JOB_LIMITS } from '../../../workers/sink/job-limits.ts'
import type { RowBatch } from '../../../workers/sink/row-batch.ts'
import { connectDatabase, isCluster } from '../../support/cluster/connect.ts'
import { commitFrame, openExpressCommits } from '../../support/express-commits.ts'
import { queueOn } from '../../support/queue-on.ts'
import { startTestPool } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/9`
const logger = pino({ level: process.env.TEST_LOG ?? 'silent' })
const keys = queueKeys('logs')
/**
 * Tests of where an insert has landed know the only part of a table that one server has. Which shards have rows of one of two
 * days is not recorded.
 */
const isShards = isCluster(services.clickhouseUrl)
const NOW = Date.now()
const opened: (() => Promise<unknown> | unknown)[] = []
let redis: Redis
let database: TestDatabase
let clickhouse: ClickHouseClient

beforeAll(async () => {
  database = await createTestDatabase(services.clickhouseUrl, `formed_differently_${process.pid}`)
  clickhouse = connectDatabase(services.clickhouseUrl, database.name)
})

beforeEach(async () => {
  redis = connectConsumer(url, logger)
  await redis.flushdb()
  for (const table of ['logs', 'exceptions', 'findings', 'ingest_log']) {
    await clickhouse.command({ query: `TRUNCATE TABLE ${table}` })
  }
})

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
  redis.disconnect()
})

afterAll(async () => {
  await clickhouse.close()
  await database.drop()
})

/** Name of a request with seven log records. */
const LONG = 'steady 7'

/** A request with one log record, which is an exception unless `body` has another. */
function request(name: string, receivedAtMs = NOW, body = bodyOf(name, name === LONG ? 7 : 1)): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs,
    contentType: 'application/x-protobuf',
    contentEncoding: 'identity',
    attributes: '',
    body,
  }
}

function bodyOf(name: string, records: number, isException = true): Buffer {
  const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
  const record = {
    body: { value: { case: 'stringValue' as const, value: name } },
    attributes: isException ? [text('exception.type', 'Error'), text('exception.message', name)] : [],
  }
  const logRecords = Array.from({ length: records }, () => record)
  const resourceLogs = [{ resource: { attributes: [text('service.name', 'shop')] }, scopeLogs: [{ logRecords }] }]
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, create(ExportLogsServiceRequestSchema, { resourceLogs })))
}

/** What a version of the decoder makes of the requests whose name begins with `changed`. */
type Version = 'accepts' | 'accepts in part' | 'refuses' | 'makes two rows'

function rowsOf(version: Version, rows: RowBatch): RowBatch {
  const append = rows.append.bind(rows)
  return Object.assign(rows, {
    append: (frame: PayloadFrame, body: Buffer, limitBytes?: number): ReturnType<RowBatch['append']> => {
      const name = /changed( \d)?/.exec(body.toString('latin1'))?.[0]
      if (name === undefined || version === 'accepts') return append(frame, body, limitBytes)
      if (version === 'refuses') return { ok: false, reason: 'truncated' }
      if (version === 'makes two rows') return append(frame, bodyOf(name, 2), limitBytes)
      const result = append(frame, body, limitBytes)
      return result.ok ? { ...result, rejected: { invalid_trace_id: { count: 1, indexes: [1] } } } : result
    },
  })
}

type TestPlan = Parameters<typeof startTestPool>[0]
type Death = readonly [table: string, moment: 'before' | 'after']

/**
 * Starts a worker. With `death`, it ends at this insert, before it is sent or before its confirmation has arrived. Without
 * `takesJobs`, it processes only what the test passes to `batches`.
 */
function worker(version: Version, death?: Death, takesJobs = true, more: Partial<TestPlan> = {}) {
  const plan: TestPlan = {
    queue: 'logs',
    kind: 'logs',
    createRows: () => rowsOf(version, createLogsBatch()),
    intervalMs: 100,
    takesJobs,
    wrapInsert: insert => async (block, token) => {
      die(tableOfUnit(block.table), 'before')
      await insert(block, token)
      die(tableOfUnit(block.table), 'after')
    },
    options: { maxRows: 1_000, jobLimits: JOB_LIMITS },
    ...more,
  }
  const pool = startTestPool(plan, { ...services, redisUrl: url }, database.name)
  const die = (table: string, moment: string) => {
    if (death?.[0] !== table || death[1] !== moment) return
    pool.stopping.abort()
    throw new TransientError('the worker has ended')
  }
  opened.push(pool.close)
  return { ...pool, ended: () => pool.stopping.signal.aborted }
}

/** Sends the requests, has a worker of one version end at this moment, and a worker of another version continue. */
async function upgrade(
  from: Version,
  to: Version,
  death: Death,
  requests: readonly PayloadFrame[],
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  await send(requests)
  await endWorker(from, death)
  await meanwhile()
  worker(to)
  await expectSettled()
}

async function expectSettled(): Promise<void> {
  await until('everything is settled', async () => (await redis.zcard(keys.pending)) === 0)
  expect(await redis.hlen(keys.batches)).toBe(0)
  expect(await redis.hlen(keys.batchOf)).toBe(0)
  exceptionsWorker('accepts')
  await expectExceptionsStored()
}

async function expectExceptionsStored(): Promise<void> {
  const { pending, batches } = queueKeys('exceptions')
  await until('the exceptions are stored', async () => (await redis.zcard(pending)) === 0)
  expect(await redis.hlen(batches)).toBe(0)
}

function exceptionsWorker(version: Version, death?: Death) {
  const createRows = () => rowsOf(version, createExceptionsBatch())
  return worker(version, death, true, { queue: 'exceptions', kind: 'exceptions', createRows })
}

/** Has a worker end at this moment. */
async function endWorker(version: Version, death: Death): Promise<void> {
  const first = worker(version, death)
  await until('the first worker has ended', () => first.ended())
  await first.close()
  expect(await redis.hlen(keys.batches)).toBeGreaterThan(0)
}

/** Commits the requests as one job. */
async function send(requests: readonly PayloadFrame[]): Promise<void> {
  const producer = connectProducer(url, 20_000, logger)
  opened.push(() => producer.disconnect())
  const options = { maxCommitBytes: MIB, maxCommitFrames: 100, timeoutMs: 20_000 }
  const commit = openExpressCommits(producer, options, 'logs')
  const enqueue = (frame: PayloadFrame) => commitFrame(commit, frame)
  const sent: Promise<unknown>[] = []
  await until('the connection is open', () => {
    try {
      sent.push(enqueue(requests[0] as PayloadFrame))
      return true
    } catch {
      return false
    }
  })
  await Promise.all([...sent, ...requests.slice(1).map(enqueue)])
  await commit.drain()
}

/** Returns what is stored of the requests: how often each is in `logs`, in `exceptions` and in the view of findings. */
async function stored() {
  const count = async (table: string, text: string) => {
    const rows = await database.rows<{ name: string; n: string }>(
      `SELECT ${text} AS name, count() AS n FROM ${table} WHERE workspace_id = 'ws_1' GROUP BY name ORDER BY name`,
    )
    return Object.fromEntries(rows.map(({ name, n }) => [name, Number(n)]))
  }
  const [findings] = await database.rows<{ n: string }>(
    `SELECT sum(occurrence_count) AS n FROM findings WHERE workspace_id = 'ws_1'`,
  )
  const letters: { body: string; reason: string; storedTables: string[] }[] = []
  for (const key of await redis.keys(`${queueKeys('dead-letters').payloadPrefix}*`)) {
    for (const { body, attributes } of decodePayload((await redis.getBuffer(key)) as Buffer)) {
      const { reason, storedTables } = JSON.parse(attributes)
      letters.push({
        body: /(changed|steady)( \d)?/.exec(body.toString('latin1'))?.[0] ?? '',
        reason,
        storedTables,
      })
    }
  }
  const exceptions = await count('exceptions', 'message')
  expect(Number(findings?.n)).toBe(Object.values(exceptions).reduce((sum, n) => sum + n, 0))
  return { logs: await count('logs', 'body'), exceptions, letters }
}

/** Has the insert into `logs` of the only batch land on the first of two days, where it has the row of `steady 1`. */
async function landOnFirstDay(): Promise<void> {
  const [batchId] = await redis.hkeys(keys.batches)
  await clickhouse.insert({
    table: 'logs',
    columns: ['workspace_id', 'received_at', 'body'],
    values: [{ workspace_id: 'ws_1', received_at: NOW - DAY_MS, body: 'steady 1' }],
    format: 'JSONEachRow',
    clickhouse_settings: { insert_deduplicate: 1, insert_deduplication_token: `${batchId}:logs`, async_insert: 0 },
  })
}

const BEFORE_ANY: Death = ['logs', 'before']
const BETWEEN: Death = ['logs', 'after']
const BEFORE_LOG: Death = ['ingest_log', 'before']
const AFTER_LAST: Death = ['ingest_log', 'after']
/** Bounds over which a job is as soon as it has two rows and another request. */
const ONE_ROW = { options: { jobLimits: { ...JOB_LIMITS, maxRows: 1 } } }

describe('a batch that a newer version forms differently', () => {
  it.each([
    ['before any insert', BEFORE_ANY],
    ['between two tables', BETWEEN],
    ['before the log of the batch', BEFORE_LOG],
  ])('stores what only the newer one accepts, once, when the older one ended %s', async (_when, death) => {
    await upgrade('refuses', 'accepts', death, [request('steady'), request('changed')])
    const once = { changed: 1, steady: 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })

  it('keeps the outcome that receipts report already, when the older one ended after the last insert', async () => {
    await upgrade('refuses', 'accepts', AFTER_LAST, [request('steady'), request('changed')])
    const { letters, ...tables } = await stored()
    expect(tables).toEqual({ logs: { steady: 1 }, exceptions: { steady: 1 } })
    expect(letters).toEqual([{ body: 'changed', reason: 'truncated', storedTables: [] }])
  })

  it.skipIf(isShards).each([
    ['before any insert', BEFORE_ANY, {}, []],
    ['between two tables', BETWEEN, { changed: 1 }, ['logs']],
    ['after the last insert, because its exceptions have not left', AFTER_LAST, { changed: 1 }, ['logs']],
  ])(
    'names in the dead letter of what only the older one accepts the tables that have it, when that ended %s',
    async (_when, death, logs, storedTables) => {
      await upgrade('accepts', 'refuses', death, [request('steady'), request('changed')])
      expect(await stored()).toEqual({
        logs: { steady: 1, ...logs },
        exceptions: { steady: 1 },
        letters: [{ body: 'changed', reason: 'truncated', storedTables }],
      })
      expect(await database.rows('SELECT sum(payloads) AS requests FROM ingest_log')).toEqual([{ requests: 2 }])
    },
  )

  it('makes no dead letter of what is stored, when the older one ended after the last insert', async () => {
    const plain = (name: string) => request(name, NOW, bodyOf(name, 1, false))
    await upgrade('accepts', 'refuses', AFTER_LAST, [plain('steady'), plain('changed')])
    expect(await stored()).toEqual({ logs: { changed: 1, steady: 1 }, exceptions: {}, letters: [] })
  })

  it.each([
    ['before any insert', BEFORE_ANY, 2, 2],
    ['between two tables', BETWEEN, 1, 2],
    ['after the last insert', AFTER_LAST, 1, 2],
  ])(
    'stores the rows of one version in each table, when the older one ended %s',
    async (_when, death, logs, exceptions) => {
      await upgrade('accepts', 'makes two rows', death, [request('steady'), request('changed')])
      expect(await stored()).toEqual({
        logs: { steady: 1, changed: logs },
        exceptions: { steady: 1, changed: exceptions },
        letters: [],
      })
    },
  )

  it('stores each request once when they are of two days', async () => {
    const requests = ['steady 1', 'changed 1'].map(name => request(name, NOW - DAY_MS))
    await upgrade('refuses', 'accepts', BETWEEN, [...requests, request('steady 2'), request('changed 2')])
    const once = { 'changed 1': 1, 'changed 2': 1, 'steady 1': 1, 'steady 2': 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })

  it('leaves no difference for the audit, though a burned token has a row', async () => {
    await upgrade('refuses', 'accepts', BETWEEN, [request('steady'), request('changed')])
    const burned = `SELECT 1 FROM ingest_log WHERE startsWith(workspace_id, '${BURNED_PREFIX}')`
    expect(await database.rows(burned)).toHaveLength(1)
    const [from, to] = [Math.floor((NOW - DAY_MS) / 1_000), Math.ceil((NOW + DAY_MS) / 1_000)]
    const range = { from, to, workspaceId: '', signal: AbortSignal.timeout(20_000) }
    for (const table of AUDITED_TABLES.filter(({ table }) => table === 'logs' || table === 'exceptions')) {
      const { differences, present } = await selectRowBalance(clickhouse, table, range)
      expect({ differences, present }, table.table).toEqual({ differences: [], present: 2 })
    }
    const balances = await selectRequestBalance(clickhouse, range)
    expect(balances.map(({ workspaceId, stored }) => ({ workspaceId, stored }))).toEqual([
      { workspaceId: 'ws_1', stored: 2 },
    ])
  })

  it.skipIf(isShards)('stores each request once when the first insert has landed on one of two days', async () => {
    const requests = [request('steady 1', NOW - DAY_MS), request('steady 2'), request('changed')]
    await upgrade('refuses', 'accepts', BEFORE_ANY, requests, landOnFirstDay)
    const once = { changed: 1, 'steady 1': 1, 'steady 2': 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })

  it.skipIf(isShards)(
    'keeps the outcome that receipts report already of requests of two days, though not all tables have rows of both',
    async () => {
      const requests = [...['steady 1', 'steady 2'].map(name => request(name, NOW - DAY_MS)), request('changed')]
      await upgrade('refuses', 'accepts', AFTER_LAST, requests)
      const { letters, ...tables } = await stored()
      const once = { 'steady 1': 1, 'steady 2': 1 }
      expect(tables).toEqual({ logs: once, exceptions: once })
      expect(letters).toEqual([{ body: 'changed', reason: 'truncated', storedTables: [] }])
      expect(await database.rows('SELECT sum(payloads) AS requests FROM ingest_log')).toEqual([{ requests: 3 }])
    },
  )

  it('completes the views of an insert that had landed without them', async () => {
    const attach = () => clickhouse.command({ query: 'ATTACH TABLE findings_from_exceptions' })
    await clickhouse.command({ query: 'DETACH TABLE findings_from_exceptions' })
    opened.push(() => attach().catch(() => undefined))
    await send([request('steady'), request('changed')])
    worker('accepts')
    const ended = exceptionsWorker('accepts', ['exceptions', 'after'])
    await until('the worker of exceptions has ended', () => ended.ended())
    await ended.close()
    await attach()
    exceptionsWorker('refuses')
    await expectExceptionsStored()
    const rows = await database.rows<{ n: string }>(
      `SELECT sum(occurrence_count) AS n FROM findings WHERE workspace_id = 'ws_1'`,
    )
    expect(Number(rows[0]?.n)).toBe(1)
  })

  it('is resolved while no large request is decoded, because no worker of this version knows its bodies', async () => {
    await send([request('steady'), request('changed')])
    const [jobId = ''] = await redis.zrange(keys.pending, '0', '-1')
    const formed = { decoder: 0, tables: {}, digest: 0, refused: {} }
    const record = { version: 1, jobIds: [jobId], storedTables: [], formed, burnedId: 'before' }
    await redis.hset(keys.batchOf, jobId, 'taken over')
    await redis.hset(keys.batches, 'taken over', JSON.stringify(record))
    const runLarge = vi.spyOn(worker('accepts').memory, 'runLarge')
    await expectSettled()
    expect(runLarge).toHaveBeenCalledOnce()
    const once = { changed: 1, steady: 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })

  it('does not split a job whose rows may be stored, although its own rows are over the bounds', async () => {
    await send([request('changed'), request('steady')])
    await endWorker('accepts', AFTER_LAST)
    worker('makes two rows', undefined, true, ONE_ROW)
    await expectSettled()
    const logs = { changed: 1, steady: 1 }
    expect(await stored()).toEqual({ logs, exceptions: { ...logs, changed: 2 }, letters: [] })
  })
})

/** Commits these requests as one job. It becomes a part whose table `logs` has all rows, or all but those of one request. */
async function sendPart(names: readonly string[], unstored?: number): Promise<void> {
  await send(names.map(name => request(name)))
  const [jobId = ''] = await redis.zrange(keys.pending, '0', '-1')
  const refused = unstored === undefined ? {} : { [jobId]: { truncated: [unstored, unstored] } }
  const record = { version: 1, jobIds: [jobId], storedTables: ['logs'], unstored: refused }
  await redis.hset(keys.batchOf, jobId, 'half')
  await redis.hset(keys.batches, 'half', JSON.stringify(record))
}

describe('a part of a refused batch', () => {
  it('is stored with what was refused when the tables were stored, and with nothing else', async () => {
    await sendPart(['steady', 'changed'], 1)
    worker('accepts')
    await expectSettled()
    expect(await stored()).toEqual({ logs: { changed: 1 }, exceptions: { changed: 1, steady: 1 }, letters: [] })
  })

  it('is stored with the records that are accepted now of a request that was refused', async () => {
    await sendPart(['steady', 'changed'], 1)
    worker('accepts in part')
    await expectSettled()
    expect(await stored()).toEqual({
      logs: { changed: 1 },
      exceptions: { changed: 1, steady: 1 },
      letters: [{ body: 'changed', reason: 'records_rejected', storedTables: [] }],
    })
  })

  it.each([0, 1, 2, 3])('keeps what is not stored of it when it is split, at position %d', async position => {
    const names = ['steady 0', 'steady 1', 'steady 2', 'steady 3']
    names[position] = 'changed'
    await sendPart(names, position)
    worker('accepts', undefined, true, ONE_ROW)
    await expectSettled()
    const exceptions = Object.fromEntries(names.map(name => [name, 1]))
    expect(await stored()).toEqual({ logs: { changed: 1 }, exceptions, letters: [] })
  })

  it.skipIf(isShards).each([
    ['no table, if no earlier version has stored it', (names: string[]) => send(names.map(name => request(name))), []],
    ['the tables that an earlier version has stored', (names: string[]) => sendPart(names), ['logs']],
  ])(
    'names in the dead letter of what was refused before ClickHouse refused another request %s',
    async (_which, commit, storedTables) => {
      await clickhouse.command({ query: 'ALTER TABLE ingest_log ADD CONSTRAINT refuses CHECK rows < 7' })
      opened.push(() => clickhouse.command({ query: 'ALTER TABLE ingest_log DROP CONSTRAINT refuses' }))
      await commit(['changed', 'steady 1', LONG])
      worker('refuses')
      await expectSettled()
      const { letters, exceptions } = await stored()
      expect(exceptions).toEqual({ 'steady 1': 1 })
      expect(letters.sort((a, b) => (a.body < b.body ? -1 : 1))).toEqual([
        { body: 'changed', reason: 'truncated', storedTables },
        { body: LONG, reason: expect.stringMatching(/^refused_by_clickhouse/), storedTables: ['logs'] },
      ])
    },
  )
})

it('a worker cannot finish a batch that a job has left', async () => {
  await send([request('steady 1')])
  await send([request('steady 2')])
  const jobIds = await redis.zrange(keys.pending, '0', '-1')
  const [first = '', second = ''] = jobIds
  const store = new RedisPayloadStore(queueOn(redis, 'logs'))
  const jobs = jobIds.map(jobId => ({ jobId, lane: 'express' as const, token: 'token' }))
  for (const { jobId, lane, token } of jobs) {
    await redis.set(keys.lock(lane, jobId), token)
    await store.payload(jobId)
  }
  expect((await store.nameBatch('whole', jobs)).size).toBe(0)
  const payload = (await redis.getBuffer(keys.payload(first))) as Buffer
  const part = { jobId: 'part', batchId: 'alone', payload, frames: 1, storedTables: [] }
  const whole = { batchId: 'whole', jobIds, storedTables: [] }
  expect(await store.splitJob(whole, payload.length, [part])).toBe(true)
  const flow = await redis.hgetall(keys.flow)

  const done = { frames: 2, bytes: 2 * payload.length, shares: new Map() }
  expect((await store.finishBatch(whole, done)).isFirst).toBe(false)
  expect(await redis.hgetall(keys.flow)).toEqual(flow)
  expect(await redis.exists(keys.payload(second))).toBe(1)

  const rest = { ...whole, jobIds: [second] }
  expect((await store.finishBatch(rest, { ...done, frames: 1, bytes: payload.length })).isFirst).toBe(true)
  expect(await redis.hkeys(keys.batches)).toEqual(['alone'])
})

describe('a job that ends its workers', () => {
  /** Has a worker take a job that has ended all workers before. */
  async function setAside(jobId: string): Promise<void> {
    await redis.set(keys.alone(jobId), 2)
    await redis.set(keys.lock('express', jobId), 'token')
    await worker('accepts', undefined, false).process({
      jobId,
      lane: 'express',
      token: 'token',
      payloadBytes: 100,
      losses: 3,
    })
  }

  it.skipIf(isShards).each([
    ['is stored when all its inserts had landed', AFTER_LAST, false, []],
    ['becomes dead letters when its exceptions had not left', AFTER_LAST, true, ['changed', 'steady']],
    ['becomes dead letters that name the tables which have it', BETWEEN, true, ['changed', 'steady']],
  ])('%s', async (_, death, isException, bodies) => {
    await send(['steady', 'changed'].map(name => request(name, NOW, bodyOf(name, 1, isException))))
    const [jobId = ''] = await redis.zrange(keys.pending, '0', '-1')
    await endWorker('accepts', death)
    await setAside(jobId)
    await expectSettled()
    const found = await stored()
    expect(found.logs).toEqual({ changed: 1, steady: 1 })
    const reason = expect.stringMatching(/^killed_worker/)
    const letters = bodies.map(body => ({ body, reason, storedTables: ['logs'] }))
    expect(found.letters.sort((a, b) => (a.body < b.body ? -1 : 1))).toEqual(letters)
    expect(await database.rows('SELECT sum(payloads) AS requests FROM ingest_log')).toEqual([{ requests: 2 }])
  })

  it('becomes dead letters that name the tables of its part, also of what only a newer version refuses', async () => {
    await sendPart(['changed', 'steady'])
    const [jobId = ''] = await redis.zrange(keys.pending, '0', '-1')
    await endWorker('refuses', BEFORE_LOG)
    await setAside(jobId)
    await expectSettled()
    const { letters } = await stored()
    expect(letters.map(({ body, storedTables }) => [body, storedTables])).toEqual([
      ['changed', ['logs']],
      ['steady', ['logs']],
    ])
  })

  it('is processed with the other jobs of its batch, which another worker has formed differently', async () => {
    await send([request('steady')])
    await send([request('changed')])
    const jobIds = await redis.zrange(keys.pending, '0', '-1')
    const formed = { decoder: 0, tables: {}, digest: 0, refused: {} }
    const record = { version: 1, jobIds, storedTables: [], formed, burnedId: 'before' }
    await redis.hset(keys.batches, 'taken over', JSON.stringify(record))
    for (const jobId of jobIds) {
      await redis.hset(keys.batchOf, jobId, 'taken over')
      await redis.set(keys.lock('express', jobId), 'token')
    }
    const { process } = worker('accepts', undefined, false)
    const [jobId = ''] = jobIds
    await process({ jobId, lane: 'express', token: 'token', payloadBytes: 100, losses: 3 })
    expect(await redis.hexists(keys.batches, 'taken over')).toBe(0)
    worker('accepts')
    await expectSettled()
    const once = { changed: 1, steady: 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })

  it.skipIf(isShards)('is divided when its first insert has landed on one of two days', async () => {
    await send([request('steady 1', NOW - DAY_MS), request('steady 2')])
    const [jobId = ''] = await redis.zrange(keys.pending, '0', '-1')
    await endWorker('accepts', BEFORE_ANY)
    await landOnFirstDay()
    await setAside(jobId)
    worker('accepts')
    await expectSettled()
    const once = { 'steady 1': 1, 'steady 2': 1 }
    expect(await stored()).toEqual({ logs: once, exceptions: once, letters: [] })
  })
})
