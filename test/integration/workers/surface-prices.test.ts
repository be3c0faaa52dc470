import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { SurfacePrices } from '../../../workers/queue/payloads/surface-prices.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const { prices: key } = queueKeys('traces')
let redis: Redis
let prices: SurfacePrices

beforeAll(() => {
  redis = new Redis(`${services.redisUrl}/9`)
  prices = new SurfacePrices('traces', { redis, logger: createLogger('workers', 'silent') })
})
afterAll(async () => {
  prices.stop()
  await redis.flushdb()
  redis.disconnect()
})

const frame = (surfaceId: string, body: Buffer): PayloadFrame => ({
  workspaceId: 'ws_1',
  surfaceId,
  receivedAtMs: 0,
  contentType: 'application/x-protobuf',
  contentEncoding: 'gzip',
  attributes: '',
  body,
})

it('a surface whose bodies state less than they decode to gets a price, and loses it when it states the truth', async () => {
  // The trailer of a gzip body of two members states the size of the second one.
  const lying = Buffer.concat([gzipSync(Buffer.alloc(32 * MIB)), gzipSync('a')])
  prices.observe(frame('honest', gzipSync(Buffer.alloc(MIB))), MIB, 5)
  prices.observe(frame('lying', lying), 32 * MIB, 5)
  await prices.flush()
  const listed = await redis.zrange(key, '0', '-1', 'WITHSCORES')
  expect(listed[0]).toBe('ws_1/lying')
  expect(Number(listed[1])).toBeGreaterThan(500)
  expect(listed).toHaveLength(2)

  for (let i = 0; i < 40; i++) prices.observe(frame('lying', gzipSync(Buffer.alloc(MIB))), MIB, 5)
  await prices.flush()
  expect(await redis.zrange(key, '0', '-1')).toEqual([])
})

it('a surface whose requests take long to decode gets a price', async () => {
  prices.observe(frame('slow', gzipSync(Buffer.alloc(MIB))), MIB, 100)
  await prices.flush()
  expect(Number(await redis.zscore(key, 'ws_1/slow'))).toBeCloseTo(15_000_000 / MIB, 0)
})
