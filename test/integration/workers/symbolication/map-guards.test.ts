import { pino } from 'pino'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { createMapGuards } from '../../../../workers/symbolication/tracing/map-guards.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const redis = connectConsumer(`${sharedServices().redisUrl}/14`, pino({ level: 'silent' }))
const MAP = 'source-maps/ws_1/a.map'
const TEN_MINUTES_MS = 600_000
const guardsOf = (deadlineMs: number, heapBytes = 1024 * MIB) => createMapGuards(redis, { deadlineMs, heapBytes })

beforeEach(() => redis.flushdb())
afterAll(() => redis.disconnect())

it('lets one worker parse a map at a time, and the next one when it is done (enter-map.lua)', async () => {
  const [one, other] = [guardsOf(60_000), guardsOf(60_000)]
  expect(await one.enter(MAP)).toBe('entered')
  expect(await other.enter(MAP)).toBe('busy')
  expect(await other.enter('source-maps/ws_2/a.map')).toBe('entered')
  await one.leave(MAP)
  expect(await other.enter(MAP)).toBe('entered')
})

it('remembers an unusable map for ten minutes, for all workers', async () => {
  await guardsOf(60_000).condemn(MAP)
  expect(await guardsOf(60_000).enter(MAP)).toBe('unusable')
  // It may have been too large for that process.
  expect(await guardsOf(60_000, 2048 * MIB).enter(MAP)).toBe('entered')
  await guardsOf(60_000, 2048 * MIB).leave(MAP)
  const [key = ''] = await redis.keys('*')
  expect(key).toMatch(/^penstock:\{symbolication\.0\}:.*ws_1/)
  expect(await redis.pttl(key)).toBeGreaterThan(TEN_MINUTES_MS - 60_000)
  expect(await redis.pttl(key)).toBeLessThanOrEqual(TEN_MINUTES_MS)
})

it('gives up a map after two workers have ended while they parsed it', async () => {
  const entered = async () => (await guardsOf(20).enter(MAP)) === 'entered'
  expect(await entered()).toBe(true)
  await until('the first worker counts as ended', entered)
  await until('the map is given up', async () => (await guardsOf(20).enter(MAP)) === 'unusable')
  expect(await redis.pttl((await redis.keys('*'))[0] ?? '')).toBeGreaterThan(0)
})
