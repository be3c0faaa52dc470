import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { HOUR_MS } from '../../../../schemas/units.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { redisTimeMs } from '../../../../shared/queue/watermark.ts'
import { createMetrics } from '../../../../shared/runtime/metrics.ts'
import { type ElectedTask, runElected } from '../../../../workers/upkeep/elected-task.ts'
import { UNUSED_FOR_MS } from '../../../../workers/upkeep/sweep-maps.ts'
import { UnusedMaps } from '../../../../workers/upkeep/unused-maps.ts'
import { createUpkeepMetrics } from '../../../../workers/upkeep/upkeep-metrics.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const redis = new Redis(`${sharedServices().redisUrl}/7`)
const name = 'uploads'

afterEach(async () => {
  vi.useRealTimers()
  await redis.hdel(upkeepKeys.done, name)
})
afterAll(() => redis.disconnect())

/** Looks a few times whether the task is due, and returns how often it was done. */
async function runsOf(done: number | undefined): Promise<number> {
  // A worker that another test has killed in this database may have the lease.
  await redis.del(upkeepKeys.lease(name))
  if (done !== undefined) await redis.hset(upkeepKeys.done, name, done)
  const stopping = new AbortController()
  const hget = vi.spyOn(redis, 'hget')
  let runs = 0
  const task: ElectedTask = { name, everyMs: HOUR_MS, lookEveryMs: 5, run: async () => void runs++ }
  const logger = pino({ level: 'silent' })
  const running = runElected({ redis, logger, stopping: stopping.signal, onDone: () => {} }, task)
  await vi.waitUntil(() => hget.mock.calls.length >= 3, { timeout: 10_000 })
  stopping.abort()
  await running
  hget.mockRestore()
  return runs
}

it('does a task once when it is due by the clock of Redis, also if it was done in the future (take-lease.lua, release-lease.lua)', async () => {
  const now = await redisTimeMs(redis)
  expect(await runsOf(undefined)).toBe(1)
  expect(await runsOf(now - HOUR_MS / 2)).toBe(0)
  expect(await runsOf(now - HOUR_MS)).toBe(1)
  expect(await runsOf(now + 1_000 * HOUR_MS)).toBe(1)
})

it('shows when a task was last done, also by another process, and 0 before the first time', async () => {
  await redis.del(upkeepKeys.lease(name))
  const metrics = createMetrics('test')
  const { observeDone } = createUpkeepMetrics(metrics)
  const shown = async () => {
    const text = await metrics.registry.metrics()
    const line = text.split('\n').find(found => found.startsWith('penstock_upkeep_last') && found.includes(`"${name}"`))
    return Number(line?.split(' ').at(-1)) * 1_000
  }
  expect(await shown()).toBe(0)
  const doneAtMs = (await redisTimeMs(redis)) - HOUR_MS / 2
  await redis.hset(upkeepKeys.done, name, doneAtMs)
  const stopping = new AbortController()
  const deps = { redis, logger: pino({ level: 'silent' }), stopping: stopping.signal, onDone: observeDone }
  const running = runElected(deps, { name, everyMs: HOUR_MS, lookEveryMs: 5, run: async () => {} })
  await until('the time of the other process is shown', async () => (await shown()) === doneAtMs)
  await redis.hset(upkeepKeys.done, name, 1)
  await until('its own time is shown', async () => (await shown()) > doneAtMs)
  stopping.abort()
  await running
})

it.each([-1_000 * HOUR_MS, 1_000 * HOUR_MS])('ignores that the clock of a worker is %i ms ahead', async aheadMs => {
  const now = await redisTimeMs(redis)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs })
  expect(await runsOf(now - HOUR_MS / 2)).toBe(0)
  expect(await runsOf(now - HOUR_MS)).toBe(1)
  const doneAt = Number(await redis.hget(upkeepKeys.done, name))
  expect(doneAt).toBeGreaterThanOrEqual(now)
  expect(doneAt).toBeLessThan(now + HOUR_MS)

  const unused = new UnusedMaps(redis, `ws_${randomUUID()}`)
  const map = 'ab'.repeat(32)
  await unused.add([map])
  const [since = 0] = await unused.since([map])
  expect(since).toBeGreaterThanOrEqual(now)
  expect(since).toBeLessThan(now + HOUR_MS)
  expect(await unused.beginDeletion([map], UNUSED_FOR_MS)).toEqual([])
})
