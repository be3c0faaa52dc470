import { Redis } from 'ioredis'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import { readWaitingDeliveries } from '../../../alerts/calling/waiting-deliveries.ts'
import { POOL_NAMES } from '../../../schemas/queues/names.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { createQueueLoads } from '../../../shared/queue/watch/queue-loads.ts'
import { startHeartbeat } from '../../../shared/queue/watch/worker-heartbeats.ts'
import { createAdminServer } from '../../../shared/runtime/admin-server.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { exampleDelivery } from '../../support/alerts/example-deliveries.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const redis = new Redis(`${sharedServices().redisUrl}/14`)

const readDeliveries = () => readWaitingDeliveries(redis)

beforeEach(() => redis.flushdb())
afterAll(() => redis.disconnect())

const EMPTY = { ageSeconds: 0, requests: 0, costBytes: 0, workers: 0, busyWorkers: 0, isPaused: false }

it('returns age and depth of each queue from what is accepted and not stored', async () => {
  const keys = queueKeys('traces')
  const nowMs = Number((await redis.time())[0]) * 1_000
  await redis.zadd(keys.pending, nowMs - 90_000, 'older', nowMs - 5_000, 'newer')
  await redis.hset(keys.flow, { acceptedPayloads: 50, donePayloads: 43, acceptedCost: 9_000, doneCost: 1_000 })
  const { traces, ...others } = await createQueueLoads(onOneServer(redis), readDeliveries)()
  expect(traces).toMatchObject({ requests: 7, costBytes: 8_000, workers: 0, busyWorkers: 0 })
  expect(traces.ageSeconds).toBeCloseTo(90, -1)
  expect(others).toEqual(Object.fromEntries(POOL_NAMES.filter(pool => pool !== 'traces').map(pool => [pool, EMPTY])))
})

it('returns the deliveries of alerts that are due, and the age of the oldest by when it was due', async () => {
  const queue = openDeliveryQueue(redis)
  const [due, later] = [exampleDelivery({ id: 'due' }), exampleDelivery({ id: 'later' })]
  await queue.add([due, later])
  const read = async () => (await createQueueLoads(onOneServer(redis), readDeliveries)()).deliveries
  await expect.poll(read).toMatchObject({ requests: 2, costBytes: 0 })
  // As the deliverer leaves one that failed: its next attempt is the time from which it is due.
  const delayedAt = (ms: number) => (Date.now() + ms) * 4_096
  await redis.lrem('penstock:{directory}:upkeep:deliveries:wait', 1, later.id)
  await redis.zadd('penstock:{directory}:upkeep:deliveries:delayed', delayedAt(60_000), later.id)
  expect(await read()).toMatchObject({ requests: 1 })
  await redis.zadd('penstock:{directory}:upkeep:deliveries:delayed', delayedAt(-90_000), later.id)
  const { requests, ageSeconds } = await read()
  expect(requests).toBe(2)
  expect(ageSeconds).toBeCloseTo(90, -1)
  await redis.zrem('penstock:{directory}:upkeep:deliveries:delayed', later.id)
  await redis.hset(`penstock:{directory}:upkeep:deliveries:${due.id}`, 'progress', Date.now() - 30_000)
  expect((await read()).ageSeconds).toBeCloseTo(30, -1)
  await queue.close()
})

it('adds up how busy the workers of a queue are, until they stop (beat.lua, running-workers.lua)', async () => {
  const until = performance.now() + 50
  const first = startHeartbeat(redis, ['traces', 'logs'])
  while (performance.now() < until) Math.sqrt(until)
  const second = startHeartbeat(redis, ['traces'])
  const loads = async () => createQueueLoads(onOneServer(redis), readDeliveries)()
  await expect.poll(async () => (await loads()).traces.workers).toBe(2)
  const { traces, logs, metrics } = await loads()
  expect(logs.workers).toBe(1)
  expect(traces.busyWorkers).toBeGreaterThan(0)
  expect(traces.busyWorkers).toBeLessThanOrEqual(2)
  expect(metrics).toEqual(EMPTY)
  await Promise.all([first.stop(), second.stop()])
  expect((await loads()).traces).toEqual(EMPTY)
})

it('calls within half a second share one read', async () => {
  let atMs = 0
  const read = createQueueLoads(onOneServer(redis), readDeliveries, () => atMs)
  expect((await read()).logs.requests).toBe(0)
  await redis.hset(queueKeys('logs').flow, { acceptedPayloads: 3 })
  atMs = 500
  expect((await read()).logs.requests).toBe(0)
  atMs = 501
  expect((await read()).logs.requests).toBe(3)
})

it('serves them at /queues of the admin port, and 503 while Redis does not answer', async () => {
  const admin = createAdminServer({
    registry: createMetrics('test').registry,
    isLive: () => true,
    isReady: () => true,
    readQueues: createQueueLoads(onOneServer(redis), readDeliveries),
    logger: createLogger('test', 'fatal'),
  })
  const url = `http://127.0.0.1:${await admin.listen('127.0.0.1', 0)}/queues`
  await redis.client('PAUSE', 1_800, 'ALL')
  const paused = await fetch(url)
  expect(paused.status).toBe(503)
  expect(await paused.text()).toContain('redis does not answer')
  await redis.ping()
  const response = await fetch(url)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(await response.json()).toMatchObject({ receipts: EMPTY })
  await admin.close()
})
