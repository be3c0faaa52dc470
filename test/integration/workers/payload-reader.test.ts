import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { openPayloadReader, type PayloadReader } from '../../../workers/queue/payloads/payload-reader.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const keys = queueKeys('traces')
const logger = pino({ level: 'silent' })
let redis: Redis
let reader: PayloadReader

beforeEach(async () => {
  redis = connectConsumer(`${sharedServices().redisUrl}/7`, logger)
  await redis.flushdb()
  reader = openPayloadReader(redis, logger, { maxIdleBytes: 8 * MIB })
})

afterEach(() => {
  reader.close()
  redis.disconnect()
})

it('reads payloads of any size unchanged, many at a time', async () => {
  const values = [0, 1, 1_000, 32_767, 32_768, 65_536, 500_000, 5_000_000].map(size => randomBytes(size))
  await Promise.all(values.map((value, i) => redis.set(keys.payload(`${i}`), value)))
  for (let round = 0; round < 3; round++) {
    const ids = [...values.keys(), 'none', ...values.keys()]
    const read = await Promise.all(ids.map(id => reader.read(keys, `${id}`)))
    expect(read.map((value, i) => (value ? value.equals(values[ids[i] as number] as Buffer) : value))).toEqual(
      ids.map(id => (id === 'none' ? null : true)),
    )
    for (const value of read) if (value) reader.giveBack(value)
  }
})

it('reads the next payload into returned memory', async () => {
  await redis.set(keys.payload('a'), Buffer.alloc(500_000, 'a'))
  await redis.set(keys.payload('b'), Buffer.alloc(400_000, 'b'))
  const first = (await reader.read(keys, 'a')) as Buffer
  reader.giveBack(first)
  const second = (await reader.read(keys, 'b')) as Buffer
  expect(second.buffer).toBe(first.buffer)
  expect(second.equals(Buffer.alloc(400_000, 'b'))).toBe(true)
})

it('continues after its connection was lost in the middle of payloads', async () => {
  const value = randomBytes(8_000_000)
  await redis.set(keys.payload('a'), value)
  let lost = 0
  for (let round = 0; round < 5; round++) {
    const reading = Promise.all(Array.from({ length: 4 }, () => reader.read(keys, 'a')))
    const others = ((await redis.client('LIST')) as string).split('\n').filter(line => /cmd=(get|lrange) /.test(line))
    for (const line of others) lost += Number(await redis.client('KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? ''))
    for (const read of await reading) {
      expect(read?.equals(value)).toBe(true)
      if (read) reader.giveBack(read)
    }
  }
  expect(lost).toBeGreaterThan(0)
})
