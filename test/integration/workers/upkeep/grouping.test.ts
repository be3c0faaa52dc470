import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openDeliveryQueue } from '../../../../alerts/calling/delivery-queue.ts'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { selectFindingVariants } from '../../../../clickhouse/queries/attributes/membership.ts'
import type { FindingRulesAnswer, TriedRules } from '../../../../schemas/http/findings/rules.ts'
import type { Finding } from '../../../../schemas/http/findings/schemas.ts'
import type { FindingRule } from '../../../../schemas/records/finding-rules.ts'
import { createDirectory, type Directory, newId } from '../../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { TransientError } from '../../../../shared/runtime/errors.ts'
import { createMetrics } from '../../../../shared/runtime/metrics.ts'
import { createExceptionsBatch } from '../../../../workers/exceptions/exceptions-batch.ts'
import { createKnownRules } from '../../../../workers/exceptions/known-rules.ts'
import { startUpkeep } from '../../../../workers/upkeep/start-upkeep.ts'
import { createUpkeepMetrics } from '../../../../workers/upkeep/upkeep-metrics.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { onOneServer } from '../../../support/queue-on.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../../support/services/edge.ts'
import { startPools, startTestPool, type TestPools } from '../../../support/services/pools.ts'
import { s3Settings } from '../../../support/services/services.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/8`
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })

let redis: Redis
let directory: Directory
let database: TestDatabase
let client: ClickHouseClient
let edge: TestEdge
let api: TestApi
let workspaceId: string
let publicKey: string
let token: string
const opened: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  directory = createDirectory(redis)
  database = await createTestDatabase(services.clickhouseUrl, `grouping_${process.pid}`)
  client = connectDatabase(services.clickhouseUrl, database.name)
  edge = await startEdge(redisUrl, s3Settings(services.s3))
  const logger = pino({ level: process.env.TEST_LOG ?? 'silent' })
  api = await startApi({ ...services, redisUrl }, database.name, s3Settings(services.s3), Date.now, logger)
})
beforeEach(async () => {
  workspaceId = newId('ws')
  const slug = `grouped-${workspaceId.slice(-8)}`
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  publicKey = await issueKey(directory, { workspaceId, surfaceId: newId('srf') })
  token = await signToken({ org: slug })
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
afterAll(async () => {
  await api?.stop()
  await edge?.stop()
  await client?.close()
  await database?.drop()
  objects.close()
  redis?.disconnect()
})

function runPools(...queues: Parameters<typeof startPools>[0]): TestPools {
  const pools = startPools(queues, { ...services, redisUrl }, database.name)
  opened.push(() => pools.stop())
  return pools
}

function runUpkeep(): void {
  const upkeep = startUpkeep({
    ...{ queues: onOneServer(redis), directoryRedis: redis, clickhouse: client, objects, retentionDays: 30 },
    deliveryQueue: openDeliveryQueue(redis),
    logger: pino({ level: process.env.TEST_LOG ?? 'silent' }),
    metrics: createUpkeepMetrics(createMetrics('test')),
  })
  opened.push(() => upkeep.stop())
}

interface Thrown {
  readonly type?: string
  readonly message?: string
  readonly where?: string
  readonly service?: string
}

/** Sends exceptions, each in a span of its own. */
async function send(...thrown: readonly Thrown[]): Promise<void> {
  const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })
  const resourceSpans = thrown.map(({ type = 'E', message = 'no', where = 'a', service = 'shop' }) => ({
    resource: { attributes: [attribute('service.name', service)] },
    scopeSpans: [
      {
        spans: [
          {
            ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), name: 'x' },
            events: [
              {
                name: 'exception',
                attributes: [
                  attribute('exception.type', type),
                  attribute('exception.message', message),
                  attribute('exception.stacktrace', `${type}: ${message}\n    at ${where} (/srv/shop/${where}.ts:1:2)`),
                ],
              },
            ],
          },
        ],
      },
    ],
  }))
  const headers = { 'x-service-public-key': publicKey }
  const { status } = await call(edge.baseUrl, 'POST /drain/v1/traces', { headers, body: { resourceSpans } })
  expect(status).toBe(200)
}

const ask = (operation: string, body?: unknown) => call(api.baseUrl, operation, { bearer: token, body })

async function findings(): Promise<Finding[]> {
  const { status, body } = await ask('GET /v3/findings')
  expect({ status, body }).toMatchObject({ status: 200 })
  return (body as { findings: Finding[] }).findings
}

const counts = async () => (await findings()).map(({ occurrenceCount }) => occurrenceCount).sort((a, b) => a - b)
const stored = (count: number) =>
  until('the exceptions are stored', async () => (await counts()).reduce((sum, n) => sum + n, 0) === count)

async function put(rules: readonly FindingRule[]): Promise<FindingRulesAnswer> {
  const { revision } = (await ask('GET /v3/finding-rules')).body as FindingRulesAnswer
  const { status, body } = await ask('PUT /v3/finding-rules', { revision, rules })
  expect(body).toMatchObject({ rules })
  expect(status).toBe(200)
  return body as FindingRulesAnswer
}

const successorOf = async (findingId: string) =>
  (await selectFindingVariants(client, { workspaceId, findingIds: [findingId] }, AbortSignal.timeout(10_000))).current

const applied = () =>
  until(
    'the rules are applied',
    async () => ((await ask('GET /v3/finding-rules')).body as FindingRulesAnswer).isApplied === true,
  )

const JOINED: FindingRule = { name: 'all of E', type: 'E', fingerprint: 'e', title: 'Something with E' }

describe('rules', () => {
  it('join what is stored and what arrives, and separate it again when they are deleted', async () => {
    runPools('traces', 'exceptions')
    await send({ where: 'a' }, { where: 'b' }, { where: 'b' }, { type: 'F' }, { where: 'a', service: 'cart' })
    await stored(5)
    expect(await counts()).toEqual([1, 1, 1, 2])
    const before = await findings()

    await put([JOINED])
    runUpkeep()
    await applied()
    expect(await counts()).toEqual([1, 1, 3])
    const joined = (await findings()).find(({ occurrenceCount }) => occurrenceCount === 3) as Finding
    expect(joined).toMatchObject({ title: JOINED.title, serviceName: 'shop' })
    expect((await findings()).find(({ type }) => type === 'F')).not.toHaveProperty('title')
    expect((await ask(`GET /v3/findings/${joined.id}`)).body).toMatchObject({
      finding: { title: JOINED.title, grouping: { by: 'rule', rule: JOINED.name, fingerprint: 'e' } },
    })
    for (const { id, type, serviceName } of before) {
      const successor = await successorOf(id)
      if (type === 'F') expect(successor).toBe(id)
      else if (serviceName === 'shop') expect(successor).toBe(joined.id)
      else expect([id, joined.id]).not.toContain(successor)
    }

    await send({ where: 'c' }, { where: 'a' })
    await stored(7)
    // A pool may have stored one of them by the rules that it knew, and moves it then.
    await until('both have joined', async () => String(await counts()) === '1,1,5')

    await put([])
    await applied()
    expect(await counts()).toEqual([1, 1, 1, 2, 2])
    await send({ where: 'c' })
    await stored(8)
    await until('the finding of the frames has it', async () => String(await counts()) === '1,1,2,2,2')
    const { body } = await ask(`GET /v3/findings/${(await findings())[0]?.id}`)
    expect(body).toMatchObject({
      finding: { grouping: { by: 'frames', exceptions: [{ type: 'E', frames: [expect.stringMatching(/^c /)] }] } },
    })
  }, 60_000)

  it('divide exceptions of one stack by their messages', async () => {
    runPools('traces', 'exceptions')
    await put([{ name: 'gone', message: 'gone*', fingerprint: 'gone' }])
    await send({ message: 'gone 1' }, { message: 'here 1' }, { message: 'gone 2' })
    await stored(3)
    expect(await counts()).toEqual([1, 2])
    runUpkeep()
    await applied()
    expect(await counts()).toEqual([1, 2])
    await put([])
    await applied()
    expect(await counts()).toEqual([3])
  }, 60_000)

  it('change what a trial has stated', async () => {
    runPools('traces', 'exceptions')
    await send({ where: 'a' }, { where: 'b' }, { where: 'c', type: 'F' }, { where: 'c', message: 'rare' })
    await stored(4)
    const before = await findings()
    const rules = [JOINED, { name: 'by file', file: '*/c.ts', fingerprint: '{type} of c' }]
    const { status, body } = await ask('POST /v3/finding-rules/try', { rules })
    const tried = body as TriedRules
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        ...{ stacks: 4, findingsBefore: 4, findingsAfter: 2, moved: 4 },
        rules: [
          { name: 'all of E', stacks: 3 },
          { name: 'by file', stacks: 1 },
        ],
      },
    })
    expect(await findings()).toEqual(before)
    runUpkeep()
    await put(rules)
    await applied()
    const after = await findings()
    expect(after.map(({ id }) => id).sort()).toEqual([...new Set(tried.examples.map(one => one.findingAfter))].sort())
    for (const { findingBefore, findingAfter } of tried.examples)
      expect(await successorOf(findingBefore)).toBe(findingAfter)
    expect(await ask('POST /v3/finding-rules/try', { rules })).toMatchObject({ body: { moved: 0, findingsBefore: 2 } })
  }, 60_000)

  it('hold in the order of their changes, whatever is stored by earlier ones', async () => {
    // This pool knows rules that are up to five seconds old.
    runPools('traces', 'exceptions')
    await send({ where: 'a' }, { where: 'b' })
    await stored(2)
    await put([JOINED])
    await put([{ ...JOINED, fingerprint: 'other' }])
    await send({ where: 'a' }, { where: 'd' })
    await stored(4)
    runUpkeep()
    await until('all are one finding', async () => String(await counts()) === '4')
    await applied()
    const [joined] = await findings()
    const { body } = await ask(`GET /v3/findings/${joined?.id}`)
    expect(body).toMatchObject({ finding: { grouping: { fingerprint: 'other' } } })
    const [ranks] = await database.rows(
      `SELECT uniqExact(id) AS findings FROM (SELECT max(membership).2 AS id FROM finding_variants
       WHERE workspace_id = '${workspaceId}' GROUP BY variant_id)`,
    )
    expect(ranks).toEqual({ findings: 1 })
  }, 60_000)

  it('are those of its record when a batch is repeated', async () => {
    runPools('traces')
    const rules = createKnownRules(directory)
    await put([{ name: 'gone', message: 'gone*', fingerprint: 'gone' }])
    await send({ message: 'gone 1' }, { message: 'here 1' })
    const inserted: string[] = []
    const worker = (dies: boolean) => {
      const createRows = () => createExceptionsBatch(undefined, undefined, rules)
      const pool = startTestPool(
        {
          ...{ queue: 'exceptions', kind: 'exceptions', createRows, lockMs: 500 },
          wrapInsert: insert => async (block, insertToken) => {
            await insert(block, insertToken)
            if (block.table === 'exceptions') inserted.push(Buffer.concat(block.block).toString('hex'))
            if (!dies) return
            pool.stopping.abort()
            throw new TransientError('the worker has ended')
          },
        },
        { ...services, redisUrl },
        database.name,
      )
      opened.push(pool.close)
      return pool
    }
    const first = worker(true)
    await until('the worker has ended', () => first.stopping.signal.aborted)
    await first.close()
    await put([])
    await put([{ name: 'here', message: 'here*', fingerprint: 'here' }])
    worker(false)
    await until('the batch is finished', async () => (await redis.zcard(queueKeys('exceptions').pending)) === 0)
    expect(inserted).toHaveLength(2)
    expect(inserted[1]).toBe(inserted[0])
    const [found] = await database.rows(`
      SELECT count() AS rows, countIf(variant_id IN (SELECT variant_id FROM findings)) AS known,
        (SELECT sum(occurrence_count) FROM findings WHERE workspace_id = '${workspaceId}') AS counted,
        uniqExact(rank) AS ranks
      FROM exceptions WHERE workspace_id = '${workspaceId}'`)
    const before = (await findings()).find(({ message }) => message === 'gone 1')
    expect(found).toMatchObject({ rows: 2, known: 2, counted: 2, ranks: 1 })
    runUpkeep()
    await applied()
    expect(await counts()).toEqual([1, 1])
    expect(new Set((await findings()).map(({ id }) => id))).not.toContain(before?.id)
  }, 60_000)
})

describe('requests', () => {
  const fault = async (rules: unknown, revision: unknown = 0) => {
    const { status, body } = await ask('PUT /v3/finding-rules', { revision, rules })
    expect(status).toBe(400)
    return (body as { message: string }).message
  }

  it('are refused with the field, the rule and its position', async () => {
    expect(await fault([JOINED, { name: 'x', type: 'E' }])).toMatch(/rules.*1.*fingerprint or title/)
    expect(await fault([{ name: 'x', fingerprint: 'f' }])).toMatch(/rules.*0.*type, message, file or service/)
    expect(await fault([{ name: 'x', type: 'E', title: 'T', file: 'a' }])).toMatch(/file.*unless fingerprint/)
    expect(await fault([{ ...JOINED, type: 'E'.repeat(201) }])).toMatch(/rules.*0.*type.*1 to 200 characters/)
    expect(await fault([{ ...JOINED, typ: 'E' }])).toMatch(/typ/)
    expect(await fault([JOINED, JOINED])).toMatch(/names that differ/)
    expect(await fault(Array.from({ length: 101 }, (_, i) => ({ ...JOINED, name: `${i}` })))).toMatch(/at most 100/)
    expect(await fault([JOINED], -1)).toMatch(/revision/)
  })

  it('are refused if the rules have changed meanwhile, and may be repeated', async () => {
    const { revision } = await put([JOINED])
    const other = await ask('PUT /v3/finding-rules', { revision: 0, rules: [] })
    expect(other).toMatchObject({ status: 409, body: { code: 'REQUEST_INVALID' } })
    expect((other.body as { message: string }).message).toContain(String(revision))
    const again = await ask('PUT /v3/finding-rules', { revision: 0, rules: [JOINED] })
    expect(again).toMatchObject({ status: 200, body: { revision } })
    expect((await ask('GET /v3/changes')).body).toMatchObject({ changes: [{ action: 'finding-rules.changed' }] })
  })
})
