import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { moveDirectory } from '../../../deploy/local/workspace/move-directory.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

let from: Redis
let to: Redis
beforeEach(async () => {
  const { redisUrl } = sharedServices()
  from = new Redis(`${redisUrl}/1`)
  to = new Redis(`${redisUrl}/2`)
  await from.flushdb()
  await to.flushdb()
})
afterEach(async () => {
  await from.quit()
  await to.quit()
})

it('moves records, indexes and releases with their types and expiry, and leaves the queues', async () => {
  await from.set('penstock:user:user_1', '{"id":"user_1"}')
  await from.zadd('penstock:workspaces', 0, 'ws_1')
  await from.hset('penstock:workspace:ws_1:release:rel_1', { version: '1.0.0' })
  await from.set('penstock:workspace:ws_1:key-request:1:user_1', 'digest', 'EX', 3_600)
  await from.set('penstock:{directory}:user:user_2', '{"id":"user_2"}')
  await from.set('penstock:queue:spans:payloads', '1')
  await from.hset('penstock:bull:spans:1', { data: 'job' })
  await from.set('penstock:{express.0}:payloads', '1')
  await moveDirectory(from, to)

  expect((await from.keys('*')).sort()).toEqual([
    'penstock:bull:spans:1',
    'penstock:queue:spans:payloads',
    'penstock:{express.0}:payloads',
  ])
  expect(await to.get('penstock:user:user_1')).toBe('{"id":"user_1"}')
  expect(await to.get('penstock:{directory}:user:user_2')).toBe('{"id":"user_2"}')
  expect(await to.zrange('penstock:workspaces', 0, '-1')).toEqual(['ws_1'])
  expect(await to.hgetall('penstock:workspace:ws_1:release:rel_1')).toEqual({ version: '1.0.0' })
  const ttl = await to.ttl('penstock:workspace:ws_1:key-request:1:user_1')
  expect(ttl).toBeGreaterThan(3_500)
  expect(ttl).toBeLessThanOrEqual(3_600)
  expect(await to.ttl('penstock:user:user_1')).toBe(-1)
})

it('ends what a killed start has begun, and keeps what changed since', async () => {
  await from.set('penstock:user:copied', 'old')
  await to.set('penstock:user:copied', 'changed since')
  await from.set('penstock:user:left', 'left')
  await moveDirectory(from, to)
  expect(await from.dbsize()).toBe(0)
  expect(await to.mget('penstock:user:copied', 'penstock:user:left')).toEqual(['changed since', 'left'])
})

it('finds every key among many of the queues', async () => {
  const pipeline = from.pipeline()
  for (let i = 0; i < 20_000; i++) pipeline.set(`penstock:queue:logs:payload:${i}`, '1')
  for (let i = 0; i < 3_000; i++) pipeline.set(`penstock:credential:${i}`, String(i))
  await pipeline.exec()
  await moveDirectory(from, to)
  expect(await from.dbsize()).toBe(20_000)
  expect(await to.dbsize()).toBe(3_000)
})
