import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../../../deploy/local/ports.ts'
import { startRedis } from '../../../../deploy/local/stores/redis.ts'
import { GIB } from '../../../../schemas/units.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { countAwakeMs } from '../../../support/count-awake-ms.ts'
import { queuedFrames } from '../../../support/queued-payloads.ts'
import { BUILD_OPERATIONS, refusal, SECRET, startBuildEdge } from '../../../support/services/build-edge.ts'
import { issueKey, startEdge, type TestEdge } from '../../../support/services/edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { redis, settings, logLines, send, register, putPart, framesOf } = build

/** The default of QUEUE_MAX_COST. */
const FULL_COST = 4 * GIB

describe('backpressure', () => {
  const queued = BUILD_OPERATIONS.filter(([, , queue]) => queue !== undefined)
  let full: TestEdge
  beforeEach(async () => {
    full = await startEdge(redisUrl, settings)
    return () => full.stop()
  })

  it.each(queued)('%s %s is refused before its body is read', async (method, path, queue) => {
    const { flow } = queueKeys(queue as 'completions')
    const slug = await register()
    await redis.hincrby(flow, 'acceptedCost', FULL_COST)
    try {
      const answer = await until('the edge has seen the queue', async () => {
        const current = await send(method, path.replace('rel_x', slug), { body: 'x', type: 'text/csv', of: full })
        return current.status === 429 ? current : undefined
      })
      expect(answer).toMatchObject(refusal(429, 'INGEST_BACKPRESSURE'))
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    } finally {
      await redis.hincrby(flow, 'doneCost', FULL_COST)
    }
  })
})

it('every operation returns 503 within a second while Redis hangs, and a repeated part is accepted once', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-releases-'))
  const server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
  const own = connectConsumer(server.url, pino({ level: 'silent' }))
  const key = await issueKey(createDirectory(own), SECRET)
  const of = await startEdge(server.url, { ...settings, VERDICT_TIMEOUT_MS: '300' })
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
    const awakeMs = countAwakeMs()
    const all = [part('text'), ...requests.map(([method, path, body]) => send(method, path, { key, of, body }))]
    for (const answer of await Promise.all(all)) {
      expect(answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE'))
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect(awakeMs()).toBeLessThan(1_000)
    process.kill(server.pid, 'SIGCONT')
    await until('the part is accepted', async () => (await part('text')).status === 200)
    expect((await part('else')).status).toBe(409)
    const bodies = (await queuedFrames(own, 'source-maps')).map(frame => String(frame.body))
    expect(bodies.filter(body => body === 'text')).toHaveLength(1)
  } finally {
    process.kill(server.pid, 'SIGCONT')
    await of.stop()
    own.disconnect()
    await server.kill9()
    await rm(dir, { recursive: true, force: true })
  }
})

it('an edge that stops answers requests that wait for a verdict', async () => {
  const of = await startEdge(redisUrl, settings)
  const awakeMs = countAwakeMs()
  const path = '/v3/releases/rel_stopping/source-maps/upload?path=a.map'
  const answer = send('PUT', path, { body: '{}', of })
  await until('the map is in the queue', async () => (await framesOf('source-maps', 'rel_stopping')).length === 1)
  await of.stop()
  expect(await answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE'))
  expect(awakeMs()).toBeLessThan(5_000)
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
