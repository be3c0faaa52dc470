import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync, gzipSync } from 'node:zlib'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { MIN_REQUEST_COST } from '../../../ingest/admission/request-cost.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { LANES, queueKeys } from '../../../shared/queue/queue.ts'
import { RawConnection, rawRequest } from '../../support/clients/raw-http-client.ts'
import { queuedPayloads } from '../../support/queued-payloads.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

/** A request of these tests costs the hundredth part of a queue. */
const COST = MIN_REQUEST_COST
const LIMITS = { QUEUE_MAX_COST: String(100 * COST) }

let dir: string
let server: LocalService
let redis: Redis
const opened: TestEdge[] = []
/** Public keys of the surfaces srf_a to srf_d. */
const keyOf: Record<string, string> = {}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-shares-'))
  server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
  redis = new Redis(server.url)
})

beforeEach(async () => {
  await redis.flushdb()
  for (const id of 'abcd') keyOf[id] = await issueKey(createDirectory(redis), surface(id))
  return async () => {
    for (const edge of opened.splice(0)) await edge.stop()
  }
})

afterAll(async () => {
  redis?.disconnect()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

const surface = (id: string) => ({ workspaceId: `ws_${id}`, surfaceId: `srf_${id}` })

async function open(settings: Record<string, string> = LIMITS): Promise<TestEdge> {
  const edge = await startEdge(server.url, settings)
  opened.push(edge)
  return edge
}

const EXPORT = Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(Buffer.alloc(100, 7)).finish())

async function send(edge: TestEdge, id: string, body: Buffer = EXPORT, encoding?: string) {
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-protobuf',
      'x-service-public-key': keyOf[id] as string,
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    },
    body: new Uint8Array(body),
  })
  return {
    status: response.status,
    text: await response.text(),
    retryAfter: Number(response.headers.get('retry-after')),
  }
}

/** Acts as the edges and the workers: changes what surfaces have in a queue. */
async function change(queue: QueueName, costs: Record<string, number>): Promise<void> {
  const keys = queueKeys(queue)
  const changes = redis.multi()
  for (const [id, cost] of Object.entries(costs)) {
    changes.hincrby(keys.flow, cost > 0 ? 'acceptedCost' : 'doneCost', Math.abs(cost))
    changes.zincrby(keys.shares, cost, `ws_${id}/srf_${id}`)
  }
  await changes.exec()
}

/** Waits until an edge has polled this backlog. */
async function seen(edge: TestEdge, cost: number): Promise<void> {
  await until(`the edge has seen a cost of ${cost}`, async () =>
    new RegExp(`^penstock_queue_cost_bytes\\{[^}]*queue="traces"[^}]*\\} ${cost}$`, 'm').test(await edge.metrics()),
  )
}

const stored = () => queuedPayloads(redis, 'traces')

describe('a flood of one surface', () => {
  it('is refused at half of the queue by every edge, while another surface is never refused', async () => {
    const [edge, other] = [await open(), await open()]
    const flood = []
    for (let i = 0; i < 15; i++) flood.push(...(await Promise.all(Array.from({ length: 10 }, () => send(edge, 'a')))))
    const accepted = flood.filter(({ status }) => status === 200).length
    // A surface that was refused while a poll was in progress is accepted again below 80 % of its limit.
    expect(accepted).toBeGreaterThanOrEqual(40)
    expect(accepted).toBeLessThanOrEqual(50)
    expect(JSON.parse(flood.at(-1)?.text ?? '')).toEqual({
      code: 'INGEST_BACKPRESSURE',
      message: 'the surface is over its share of the traces queue; retry after the delay',
    })
    await change('traces', { a: (50 - accepted) * COST })
    await seen(edge, 50 * COST)
    await seen(other, 50 * COST)
    expect((await send(other, 'a')).status).toBe(429)
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all([send(edge, 'b'), send(other, 'b'), send(edge, 'a')])
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    }
    const frames = (await stored()).flatMap(payload => payload.frames)
    expect(frames.filter(frame => frame.surfaceId === 'srf_a')).toHaveLength(accepted)
    expect(frames.map(frame => frame.cost)).toEqual(Array(accepted + 20).fill(COST))
    expect(await redis.zrevrange(queueKeys('traces').shares, 0, -1, 'WITHSCORES')).toEqual([
      ...['ws_a/srf_a', String(50 * COST)],
      ...['ws_b/srf_b', String(20 * COST)],
    ])
    const refused = 150 - accepted + 10
    expect(await edge.metrics()).toMatch(
      new RegExp(`penstock_refused_requests_total\\{queue="traces",reason="share"[^}]*\\} ${refused}\n`),
    )
  })

  it('is accepted again when it has fallen to 80 % of its limit', async () => {
    const edge = await open()
    await change('traces', { a: 50 * COST })
    await seen(edge, 50 * COST)
    expect((await send(edge, 'a')).status).toBe(429)
    await change('traces', { a: -5 * COST })
    await seen(edge, 45 * COST)
    expect((await send(edge, 'a')).status).toBe(429)
    await change('traces', { a: -1 * COST })
    await seen(edge, 44 * COST)
    expect((await send(edge, 'a')).status).toBe(200)
  })

  it('ends in the dead letters: only its surface is refused while they wait', async () => {
    const edge = await open()
    await change('dead-letters', { a: 200 * MIB, b: MIB })
    await until('the surface is refused', async () => (await send(edge, 'a')).status === 429)
    expect((await send(edge, 'a')).text).toContain('too many requests of the surface could not be stored')
    expect((await send(edge, 'b')).status).toBe(200)
    await change('dead-letters', { a: -200 * MIB })
    await until('the surface is accepted again', async () => (await send(edge, 'a')).status === 200)
  })
})

it('a workspace that floods with all its surfaces is refused at two thirds of the queue, and others are accepted', async () => {
  const key = await issueKey(createDirectory(redis), { workspaceId: 'ws_a', surfaceId: 'srf_new' })
  keyOf.new = key
  const edge = await open()
  const { flow, shares } = queueKeys('traces')
  const flood = redis.multi().hincrby(flow, 'acceptedCost', 70 * COST)
  for (let i = 0; i < 700; i++) flood.zincrby(shares, COST / 10, `ws_a/srf_flood${i}`)
  await flood.exec()
  await until('another surface of the workspace is refused', async () => (await send(edge, 'new')).status === 429)
  expect((await send(edge, 'new')).text).toContain('the workspace is over its share of the traces queue')
  for (const id of 'bcd') expect((await send(edge, id)).status).toBe(200)
})

it('every surface is refused when a queue is full, also one that holds nothing, and the other queues are open', async () => {
  const edge = await open()
  await change('traces', { a: 40 * COST, b: 30 * COST, c: 30 * COST })
  await seen(edge, 100 * COST)
  for (const id of 'abcd') expect((await send(edge, id)).status).toBe(429)
  const logs = await fetch(`${edge.baseUrl}/drain/v1/logs`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': keyOf.a as string },
    body: new Uint8Array(EXPORT),
  })
  expect(logs.status).toBe(200)
})

it('while Redis is nearly full, requests that write to it are refused, also those without a queue', async () => {
  const edge = await open({})
  const key = await issueKey(createDirectory(redis), { ...surface('a'), kind: 'secret', scopes: ['release:write'] })
  const build = async (path: string, body: object) => {
    const response = await fetch(`${edge.baseUrl}/v3/releases${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, string> }
  }
  const { releaseSlug } = (await build('', { version: '1' })).body
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', Math.ceil(used / 0.8))
  try {
    await until('exports are refused', async () => (await send(edge, 'a')).status === 429)
    expect((await send(edge, 'b')).text).toContain('the store of the queues is nearly full')
    const refused = { status: 429, body: { code: 'INGEST_BACKPRESSURE', service: 'frontier-buildtime' } }
    expect(
      await build(`/${releaseSlug}/source-maps/sign`, { files: [{ path: 'a', size: 1, hash: 'x' }] }),
    ).toMatchObject(refused)
  } finally {
    await redis.config('SET', 'maxmemory', '2gb')
  }
  await until('exports are accepted again', async () => (await send(edge, 'a')).status === 200)
})

it('Retry-After grows with the backlog of the surface and differs among its clients', async () => {
  const delaysAt = async (backlog: number) => {
    await redis.del(queueKeys('traces').flow, queueKeys('traces').shares)
    const edge = await open({ QUEUE_MAX_COST: String(100 * MIB) })
    await change('traces', { a: (backlog + 8) * MIB })
    await seen(edge, (backlog + 8) * MIB)
    // Rates are measured while there is more than 16 MiB. The workers finish a fiftieth of the queue in about a second. The delay
    // is at most twice the time of the backlog.
    for (let left = backlog + 7.5; left >= backlog; left -= 0.5) {
      await change('traces', { a: -MIB / 2 })
      await seen(edge, left * MIB)
    }
    return Promise.all(Array.from({ length: 20 }, async () => (await send(edge, 'a')).retryAfter))
  }
  const [few, many] = [await delaysAt(54), await delaysAt(88)]
  expect(Math.min(...many)).toBeGreaterThan(Math.min(...few))
  expect(new Set(many).size).toBeGreaterThan(1)
  for (const delay of [...few, ...many]) {
    expect(Number.isInteger(delay)).toBe(true)
    expect(delay).toBeGreaterThanOrEqual(1)
    expect(delay).toBeLessThanOrEqual(60)
  }
})

it('a refused request is answered on its head, before any byte of its body', async () => {
  const edge = await open()
  await change('traces', { a: 60 * COST })
  await seen(edge, 60 * COST)
  const head = {
    'content-type': 'application/x-protobuf',
    'x-service-public-key': keyOf.a as string,
    'content-length': String(10 * MIB),
  }
  const connection = new RawConnection(edge.port).send(rawRequest('POST', '/drain/v1/traces', head))
  expect((await connection.response()).status).toBe(429)
  connection.socket.destroy()
})

describe('the cost of a request', () => {
  it('follows the decoded size and the price that workers have measured, and is in its frame and in Redis', async () => {
    await redis.zadd(queueKeys('traces').prices, 3, 'ws_b/srf_b')
    const edge = await open({})
    const body = gzipSync(Buffer.concat(Array(20_000).fill(EXPORT)))
    expect((await send(edge, 'a', body, 'gzip')).status).toBe(200)
    expect((await send(edge, 'b', body, 'gzip')).status).toBe(200)
    const costs = Object.fromEntries(
      (await stored()).flatMap(({ frames }) => frames.map(frame => [frame.surfaceId, frame.cost])),
    )
    expect(costs).toEqual({ srf_a: 20_000 * EXPORT.length, srf_b: 3 * 20_000 * EXPORT.length })
    const { flow, shares } = queueKeys('traces')
    expect(Number(await redis.hget(flow, 'acceptedCost'))).toBe(4 * 20_000 * EXPORT.length)
    expect(Number(await redis.zscore(shares, 'ws_b/srf_b'))).toBe(costs.srf_b)
  })
})

it('a job has at most 16 MiB of work, so that the lanes alternate', async () => {
  const edge = await open({})
  const body = gzipSync(Buffer.concat(Array(40_000).fill(EXPORT)))
  const answers = await Promise.all(Array.from({ length: 12 }, () => send(edge, 'a', body, 'gzip')))
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  const costs = (await stored()).map(({ frames }) => frames.reduce((sum, { cost = 0 }) => sum + cost, 0))
  expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(12 * 40_000 * EXPORT.length)
  expect(Math.max(...costs)).toBeLessThanOrEqual(16 * MIB)
})

describe('lanes', () => {
  /** Returns the lane and the priority of the job with the only request of a surface. */
  async function laneOf(id: string): Promise<{ lane: string; priority: number }> {
    const found = (await stored()).find(({ frames }) => frames.some(frame => frame.surfaceId === `srf_${id}`))
    return until('the job is added', async () => {
      for (const lane of LANES) {
        const job = await redis.hgetall(queueKeys('traces').job(lane, found?.jobId ?? ''))
        if (Object.keys(job).length > 0) return { lane, priority: Number(job.priority) }
      }
    })
  }

  it('requests of a surface with much unfinished work take the bulk lane, the least loaded surface first', async () => {
    const edge = await open({})
    const load = { a: 30 * MIB, b: 900 * MIB }
    await change('traces', load)
    await change('traces', { a: -MIB, b: -MIB })
    await seen(edge, 928 * MIB)
    await change('traces', { a: -MIB, b: -MIB })
    await seen(edge, 926 * MIB)
    for (const id of 'bac') expect((await send(edge, id)).status).toBe(200)
    const [a, b, c] = [await laneOf('a'), await laneOf('b'), await laneOf('c')]
    expect([a.lane, b.lane, c]).toEqual(['bulk', 'bulk', { lane: 'express', priority: 0 }])
    expect(a.priority).toBeLessThan(b.priority)
  })

  it('a body whose decoded size is unknown takes the bulk lane as long as its surface is new', async () => {
    const edge = await open({})
    expect((await send(edge, 'a', deflateSync(EXPORT), 'deflate')).status).toBe(200)
    expect((await laneOf('a')).lane).toBe('bulk')
  })
})
