import { create, toBinary } from '@bufbuild/protobuf'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { DurabilityWatch } from '../../../shared/queue/durability-watch.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { type RedisPair, startRedisPair } from '../../support/redis-pair.ts'
import { putWorkspace, signToken, startApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const SETTINGS = { REDIS_DURABILITY: 'replicated', JOB_LOCK_MS: '2000' }
const services = sharedServices()
const databaseName = `failover_${process.pid}`

let database: TestDatabase
let pair: RedisPair
let edge: TestEdge
let pools: TestPools | undefined
let publicKey: string
let secretKey: string
let serial = 0

beforeAll(async () => {
  database = await createTestDatabase(services.clickhouseUrl, databaseName)
})

beforeEach(async () => {
  pair = await startRedisPair()
  publicKey = await issueKey(createDirectory(pair.primary))
  secretKey = await issueKey(createDirectory(pair.primary), { kind: 'secret', scopes: ['release:write'] })
  edge = await startEdge(pair.url, SETTINGS)
  return async () => {
    await pools?.stop()
    await edge.stop()
    await pair.stop()
  }
})

afterAll(() => database?.drop())

const startWorkers = () => {
  pools = startPools(['traces'], { ...services, redisUrl: pair.url }, databaseName, SETTINGS)
}

/** Sends one span, and returns its id and the status of the answer. */
async function send(): Promise<{ id: string; status: number }> {
  const spanId = Buffer.alloc(8)
  spanId.writeUInt32BE(++serial, 4)
  const now = BigInt(Date.now()) * 1_000_000n
  const span = { traceId: Buffer.alloc(16, 1), spanId, name: 'work', startTimeUnixNano: now, endTimeUnixNano: now }
  const request = create(ExportTraceServiceRequestSchema, { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey },
    body: new Uint8Array(toBinary(ExportTraceServiceRequestSchema, request)),
  })
  await response.arrayBuffer()
  return { id: spanId.toString('hex'), status: response.status }
}

/** Eight clients that send without pause. */
function startClients() {
  const acknowledged: string[] = []
  const sent: string[] = []
  let refused = 0
  let over = false
  const client = async () => {
    while (!over) {
      const { id, status } = await send()
      sent.push(id)
      if (status === 200) acknowledged.push(id)
      else {
        expect(status).toBe(503)
        refused++
      }
    }
  }
  const clients = Promise.all(Array.from({ length: 8 }, client))
  return {
    acknowledged,
    sent,
    get refused() {
      return refused
    },
    async more(count: number) {
      const before = acknowledged.length
      await until('requests are acknowledged', () => acknowledged.length >= before + count)
    },
    async stop() {
      over = true
      await clients
    },
  }
}

async function stored(): Promise<Map<string, number>> {
  const query = 'SELECT lower(hex(span_id)) AS id, count() AS count FROM spans GROUP BY id'
  const rows = await database.rows<{ id: string; count: string }>(query)
  return new Map(rows.map(({ id, count }) => [id, Number(count)]))
}

/** Waits until these are stored, and expects that none of `sent` is stored twice. */
async function expectStoredOnce(acknowledged: readonly string[], sent: readonly string[]): Promise<void> {
  const counts = await until(
    'every acknowledged request is stored',
    async () => {
      const counts = await stored()
      return acknowledged.every(id => counts.has(id)) ? counts : undefined
    },
    { deadlineMs: 30_000 },
  )
  expect(sent.filter(id => (counts.get(id) ?? 0) > 1)).toEqual([])
}

it('nothing acknowledged is lost or stored twice when a replica that is behind is promoted under load', async () => {
  startWorkers()
  const clients = startClients()
  await clients.more(100)
  pair.holdReplication()
  const answered = clients.acknowledged.length + clients.refused
  await until('requests are answered meanwhile', () => clients.acknowledged.length + clients.refused > answered + 30)
  await pair.promote()
  await clients.more(100)
  await clients.stop()
  await expectStoredOnce(clients.acknowledged, clients.sent)
})

it('a payload that comes back with a promoted replica is stored once, because its batch was confirmed before the insert', async () => {
  const clients = startClients()
  await clients.more(100)
  await clients.stop()
  pair.holdReplication()
  startWorkers()
  const isNamed = async () => (await pair.primary.hlen(queueKeys('traces').batches)) > 0
  await until(
    'a batch is named or stored',
    async () => (await isNamed()) || (await stored()).has(clients.sent[0] ?? ''),
  )
  await pair.promote()
  await expectStoredOnce(clients.acknowledged, clients.sent)
})

it('edge, API and workers write to the new primary without a restart, though their connections stay open', async () => {
  startWorkers()
  const api = await startApi({ ...services, redisUrl: pair.url }, databaseName)
  try {
    const headers = { authorization: `Bearer ${await signToken()}`, 'content-type': 'application/json' }
    const createSurface = async () => {
      const init = { method: 'POST', headers, body: JSON.stringify({ name: 'Web shop' }) }
      return (await fetch(`${api.baseUrl}/v3/surfaces`, init)).status
    }
    const register = async () => {
      const key = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers: key, body: JSON.stringify({ version: `v${++serial}` }) }
      return (await fetch(`${edge.baseUrl}/v3/releases`, init)).status
    }
    await putWorkspace(pair.url, { id: 'ws_1', slug: 'acme' })
    expect([await createSurface(), await register(), (await send()).status]).toEqual([201, 200, 200])
    await pair.promote()
    // One request each at most fails: it finds that its connection leads to a replica.
    expect([201, 503]).toContain(await createSurface())
    await until('the API writes again', async () => (await createSurface()) === 201)
    await until('the edge registers releases again', async () => (await register()) === 200)
    const { id } = await until('the edge accepts again', async () => {
      const sent = await send()
      return sent.status === 200 ? sent : undefined
    })
    await until('the workers store it', async () => (await stored()).has(id))
    expect(await pair.replica.info('replication')).toMatch(/^role:master/m)
  } finally {
    await api.stop()
  }
})

it('a process that only reads leaves a server that was demoted while its connection stays open', async () => {
  const redis = connectProducer(pair.url, 2_000, pino({ level: 'silent' }))
  const reconnect = () => redis.disconnect(true)
  const promise = { REDIS_DURABILITY: 'replicated', REDIS_MIN_REPLICAS: 1 } as const
  const watch = new DurabilityWatch({ redis, store: 'queues', logger: pino({ level: 'silent' }), reconnect }, promise)
  await until('the server is found safe', () => watch.fault === undefined)
  await pair.promote()
  await until('the replica is noticed', () => {
    watch.recheck()
    return watch.fault?.includes('it is a replica')
  })
  await until('the new primary is found safe', () => watch.fault === undefined)
  expect(await redis.info('replication')).toMatch(/^role:master/m)
  watch.stop()
  redis.disconnect()
})
