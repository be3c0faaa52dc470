import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runTransaction, sendInPlace } from '../../../ingest/commit/redis-transaction.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

let redis: Redis

beforeEach(async () => {
  redis = new Redis(sharedServices().redisUrl)
  await redis.del('transaction:a', 'transaction:b')
})

afterEach(() => redis.disconnect())

it('stores values byte for byte, whatever their size', async () => {
  for (const size of [0, 1, 16_383, 3_000_000]) {
    const value = Buffer.from(Array.from({ length: size }, (_, i) => (i * 31) % 256))
    await runTransaction(redis, () => [
      sendInPlace(redis, ['psetex', 'transaction:a', 60_000], value),
      redis.incr('transaction:b'),
    ])
    expect((await redis.getBuffer('transaction:a'))?.equals(value)).toBe(true)
    expect(await redis.pttl('transaction:a')).toBeGreaterThan(0)
  }
  expect(await redis.get('transaction:b')).toBe('4')
})

it('returns the error of a command that fails', async () => {
  const results = await runTransaction(redis, () => [
    sendInPlace(redis, ['psetex', 'transaction:a', 60_000], Buffer.from('text')),
    redis.incr('transaction:a'),
  ])
  expect(results[0]).toEqual([null, 'OK'])
  expect(results[1]?.[0]?.message).toContain('not an integer')
})

it('runs nothing when Redis refuses a command, and leaves the connection usable', async () => {
  const run = runTransaction(redis, () => [
    sendInPlace(redis, ['psetex', 'transaction:a', 60_000], Buffer.from('text')),
    redis.call('no-such-command'),
  ])
  await expect(run).rejects.toThrow('unknown command')
  expect(await redis.exists('transaction:a')).toBe(0)
  expect(await redis.ping()).toBe('PONG')
})

it('rejects a command that was sent too late to be part of it', async () => {
  const late = async () => {
    await Promise.resolve()
    return redis.incr('transaction:b')
  }
  const run = runTransaction(redis, () => [
    sendInPlace(redis, ['psetex', 'transaction:a', 60_000], Buffer.from('text')),
    late(),
  ])
  await expect(run).rejects.toThrow('outside of its transaction')
})
