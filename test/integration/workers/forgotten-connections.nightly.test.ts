import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer, connectProducer, SILENCE_MS } from '../../../shared/queue/redis.ts'
import { openPayloadReader, type PayloadReader } from '../../../workers/queue/payloads/payload-reader.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { FaultProxy } from '../../support/chaos/fault-proxy.ts'
import { queueOn, queuesAt } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/11`
const logger = pino({ level: 'silent' })
/** Until a dead connection is noticed, and time for a busy machine to make a new one. */
const NOTICED = { deadlineMs: 4 * SILENCE_MS }
const TIMEOUT_MS = 6 * SILENCE_MS
let redis: Redis

beforeAll(async () => {
  redis = new Redis(url)
  await redis.flushdb()
})
afterAll(() => redis.disconnect())

async function behindProxy(run: (proxy: FaultProxy, url: string) => Promise<void>): Promise<void> {
  const proxy = await FaultProxy.start(Number(new URL(url).port))
  try {
    await run(proxy, proxy.before(url))
  } finally {
    await proxy.close()
  }
}

/** Runs a test with a reader of payloads behind a proxy. */
const readingBehindProxy = (run: (proxy: FaultProxy, reader: PayloadReader) => Promise<void>) =>
  behindProxy(async (proxy, proxied) => {
    const consumer = connectConsumer(proxied, logger)
    const reader = openPayloadReader(consumer, logger, { maxIdleBytes: 0 })
    try {
      await run(proxy, reader)
    } finally {
      reader.close()
      consumer.disconnect()
    }
  })

// Each waits for most of its time.
describe.concurrent('connections that the network forgets without closing them', { timeout: TIMEOUT_MS }, () => {
  it('a pool takes jobs again', () =>
    behindProxy(async (proxy, proxied) => {
      const store = new RedisPayloadStore(queueOn(redis, 'traces'))
      const jobs = createJobAdder(queueOn(redis))
      const taken = new Set<string>()
      const add = async (jobId: string) => {
        await redis.set(queueKeys('traces').payload(jobId), 'x')
        await jobs.add('traces', [{ jobId, payload: Buffer.from('x'), frames: 1 }])
      }
      const pool = startPool(
        'traces',
        {
          queues: queuesAt(proxied, redis),
          logger,
          open:
            () =>
            async ({ jobId }) => {
              taken.add(jobId)
              await store.finishJob(jobId, { frames: 1, bytes: 1, shares: new Map() })
            },
        },
        { concurrency: 2, lockMs: 5_000, stalledCheckMs: 60_000 },
      )
      await add('before')
      await until('the first job is taken', () => taken.has('before'))
      proxy.forget()
      await add('after')
      await until('a job is taken on a new connection', () => taken.has('after'), NOTICED)
      await pool.close()
      await jobs.close()
    }))

  it('a command of a consumer is answered', () =>
    behindProxy(async (proxy, proxied) => {
      const consumer = connectConsumer(proxied, logger)
      await consumer.ping()
      proxy.forget()
      expect(await consumer.ping()).toBe('PONG')
      consumer.disconnect()
    }))

  it('a producer is served again', () =>
    behindProxy(async (proxy, proxied) => {
      const producer = connectProducer(proxied, 500, logger)
      const isServed = () => producer.ping().then(Boolean, () => false)
      await until('it is connected', isServed)
      proxy.forget()
      expect(await isServed()).toBe(false)
      await until('it is served', isServed, NOTICED)
      producer.disconnect()
    }))

  it('a payload is read', () =>
    readingBehindProxy(async (proxy, reader) => {
      const keys = queueKeys('logs')
      const payload = Buffer.alloc(200_000, 'payload')
      await redis.set(keys.payload('job'), payload)
      expect(await reader.read(keys, 'job')).toEqual(payload)
      proxy.forget()
      expect(await reader.read(keys, 'job')).toEqual(payload)
    }))

  it('a payload that takes longer to arrive is read on its first connection', () =>
    readingBehindProxy(async (proxy, reader) => {
      const keys = queueKeys('metrics')
      const payload = Buffer.alloc(1_000_000, 'payload')
      await redis.set(keys.payload('job'), payload)
      await redis.set(keys.payload('small'), 'small')
      expect(await reader.read(keys, 'small')).toEqual(Buffer.from('small'))
      proxy.slow({ latencyMs: 0, bytesPerSecond: payload.length / (1.3 * (SILENCE_MS / 1_000)) })
      expect(await reader.read(keys, 'job')).toEqual(payload)
    }))
})
