import { Redis } from 'ioredis'
import { afterAll, beforeEach, expect, it, vi } from 'vitest'
import { failingRules } from '../../../alerts/measuring/rule-states.ts'
import { type MeasuredSurface, watchMeasures } from '../../../alerts/measuring/watch-measures.ts'
import { type AlertRule, alertsSchema, type Occasion } from '../../../schemas/records/alerts.ts'
import { MINUTE_MS, SECOND_MS } from '../../../schemas/units.ts'
import { writeAlerts } from '../../../shared/directory/alerts-store.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { removeOccasions, waitingOccasions } from '../../../shared/directory/occasions.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
import { redisTimeMs } from '../../../shared/queue/watermark.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { MeasuredStage, SHOP } from '../../support/alerts/measured-stage.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const stage = await MeasuredStage.create('watch_measures')
const redis = new Redis(`${sharedServices().redisUrl}/8`)
const logger = { warn: vi.fn() }
/** The minute in which the test runs, by the clock of Redis. */
let nowMs = 0
/** Why the rules about findings cannot be measured. */
let fault: Error | undefined
const directory = createDirectory(redis)
const findingMerges = async (workspaceId: string) => {
  if (fault) throw fault
  return directory.findingMerges(workspaceId)
}
/** Instants that the process has found quiet. */
let quiet = new Map<string, number>()
/** Times until which the surface is settled, later than now, in ms. */
let settled: Partial<Record<'exceptions' | 'spanCounts' | 'metrics' | 'all', number>> = {}

beforeEach(async () => {
  await redis.flushdb()
  stage.renew()
  logger.warn.mockClear()
  settled = {}
  quiet = new Map()
  fault = undefined
  nowMs = Math.floor((await redisTimeMs(redis)) / MINUTE_MS) * MINUTE_MS
  await redis.zadd(`penstock:{directory}:workspace:${stage.workspaceId}:surface-ids`, 0, SHOP)
})
afterAll(async () => {
  redis.disconnect()
  await stage.drop()
})

const ERRORS: AlertRule = { name: 'errors', kinds: ['service.errors'], errors: { percent: 50, minutes: 1, atLeast: 1 } }
const LATE: AlertRule = { name: 'late', kinds: ['pipeline.late'] }

async function keep(...rules: AlertRule[]): Promise<void> {
  const receiver = { id: `rcv_${'0'.repeat(20)}`, name: 'on-call', channel: 'webhook', address: '', sealed: '' }
  const changedAt = new Date(nowMs).toISOString()
  const alerts = { version: 1, workspaceId: stage.workspaceId, revision: 1, changedAt, rules }
  const commands = writeAlerts(alertsSchema.parse({ ...alerts, receivers: [{ ...receiver, createdAt: changedAt }] }))
  expect(await commitIf(redis, { guards: [], commands })).toBe(true)
}

/** Watches as at a time after the minute of the test. */
async function watch(afterMs: number, assertElected = async () => {}): Promise<void> {
  const readAtMs = nowMs + afterMs
  const of = (name: keyof typeof settled) => readAtMs + (settled[name] ?? 0)
  const surface = (ids: { workspaceId: string; surfaceId: string }): MeasuredSurface => ({
    ...ids,
    ...{ exceptionsMs: of('exceptions'), failuresMs: of('exceptions'), spanCountsMs: of('spanCounts') },
    ...{ metricsMs: of('metrics'), allMs: of('all') },
  })
  await watchMeasures({
    ...{ clickhouse: stage.clickhouse, redis, directory: { ...directory, findingMerges }, assertElected },
    nowMs: async () => readAtMs,
    settled: async surfaces => ({ readAtMs, surfaces: surfaces.map(surface) }),
    logger: logger as never,
    quiet,
  })
}

const occasions = async (): Promise<Occasion[]> =>
  (await waitingOccasions(redis, 1_000)).map(({ occasion }) => occasion)
const take = async (): Promise<Occasion[]> => {
  const waiting = await waitingOccasions(redis, 1_000)
  await removeOccasions(redis, waiting)
  return waiting.map(({ occasion }) => occasion)
}
/** Instants of occasions in minutes after that of the test, with whether a condition has ended. */
const instants = (some: readonly Occasion[]) =>
  some.map(({ at, resolved = false }) => [(Date.parse(at) - nowMs) / MINUTE_MS, resolved])
/** A call that failed in minutes that are counted from that of the test. */
const fail = (...minutes: number[]) =>
  stage.receiveCalls(minutes.map(minute => ({ atMs: nowMs + minute * MINUTE_MS, calls: 2, errors: 2 })))
const at = (minute: number, seconds = 40) => minute * MINUTE_MS + seconds * SECOND_MS
it('calls once when a condition begins and once when it has not held for five minutes', async () => {
  await keep(ERRORS)
  await fail(-1, 0, 1)
  await watch(at(0))
  await watch(at(0, 50))
  expect(await take()).toMatchObject([
    {
      kind: 'service.errors',
      ...{ ruleName: 'errors', service: 'shop', environment: 'production', at: new Date(nowMs).toISOString() },
      measured: { value: 100, threshold: 50 },
    },
  ])
  for (const minute of [1, 2, 3, 6]) await watch(at(minute))
  expect(await occasions()).toEqual([])
  await watch(at(7))
  expect(instants(await take())).toEqual([[7, true]])
})

it('repeats an instant with the same ids after a crash before the commit, and records it once', async () => {
  await keep(ERRORS)
  await fail(-1)
  let asked = 0
  const killed = async () => {
    if (++asked > 1) throw new Error('killed')
  }
  await expect(watch(at(0), killed)).rejects.toThrow('killed')
  expect([await occasions(), await redis.exists(upkeepKeys.measured(stage.workspaceId))]).toEqual([[], 0])
  await watch(at(0))
  const [first] = await take()
  await redis.del(upkeepKeys.measured(stage.workspaceId))
  await watch(at(0, 45))
  expect(await take()).toEqual([first])
})

it('lets one of two processes that measure the same instant record it', async () => {
  await keep(ERRORS)
  await fail(-1)
  await Promise.all([watch(at(0)), watch(at(0)), watch(at(0))])
  expect(await occasions()).toHaveLength(1)
})

it('measures the minutes of a pause of ten minutes in order, and leaves out earlier ones', async () => {
  await keep(ERRORS)
  await watch(at(-20))
  await fail(-19, -18, -8, -7)
  await watch(at(0))
  expect(instants(await take())).toEqual([
    [-7, false],
    [-1, true],
  ])
})

it('waits for a surface that lags, but five minutes at most, and not to call for that', async () => {
  await keep(ERRORS, LATE)
  await fail(-1)
  settled = { spanCounts: -2 * MINUTE_MS, all: -6 * MINUTE_MS }
  await watch(at(0))
  expect(await take()).toMatchObject([{ kind: 'pipeline.late', surfaceId: SHOP, ruleName: 'late' }])
  settled = { spanCounts: -60 * MINUTE_MS }
  await watch(at(4, 50))
  expect(await take()).toEqual([])
  await watch(at(5, 10))
  expect(await take()).toMatchObject([
    { kind: 'service.errors', at: new Date(nowMs).toISOString() },
    { kind: 'pipeline.late', resolved: true },
  ])
})

it('forgets what a rule has found that was removed or measures something else, and calls for none of it', async () => {
  await keep(ERRORS)
  await fail(-1)
  await watch(at(0))
  expect(await take()).toHaveLength(1)
  await keep({ ...ERRORS, errors: { percent: 60, minutes: 1, atLeast: 1 } })
  await watch(at(0))
  expect((await take()).map(({ measured }) => measured?.threshold)).toEqual([60])
  await keep({ ...ERRORS, errors: { percent: 60, minutes: 1, atLeast: 1 }, everyMinutes: 10 })
  await watch(at(0))
  expect(await take()).toEqual([])
  await keep()
  await watch(at(8))
  expect(await take()).toEqual([])
  expect(await redis.hlen(upkeepKeys.measured(stage.workspaceId))).toBe(0)
})

it('shows a rule that cannot be measured until it can, and measures the others', async () => {
  const faulty: AlertRule = { name: 'faulty', kinds: ['finding.spiking'] }
  await keep(faulty, ERRORS)
  await fail(-1)
  await stage.throwErrors([{ atMs: nowMs - MINUTE_MS }])
  fault = new PermanentError('there is no such function')
  await watch(at(0))
  expect(await take()).toMatchObject([{ kind: 'service.errors' }])
  const failing = () => failingRules(redis, stage.workspaceId, [faulty, ERRORS])
  const since = new Date(nowMs + at(0)).toISOString()
  expect(await failing()).toEqual([
    { rule: 'faulty', kind: 'finding.spiking', since, reason: 'there is no such function' },
  ])
  await watch(at(0, 50))
  expect(logger.warn).toHaveBeenCalledTimes(1)
  fault = new TransientError('connect ECONNREFUSED 10.0.0.1:8123')
  await watch(at(2))
  expect(logger.warn).toHaveBeenCalledTimes(2)
  expect(await failing()).toMatchObject([{ since, reason: 'the database did not answer in time' }])
  fault = undefined
  await watch(at(4))
  expect(await failing()).toEqual([])
})

it('measures nothing and records nothing of a workspace in which nothing could spike, and calls as soon as it does', async () => {
  await keep({ name: 'spikes', kinds: ['finding.spiking'] }, { name: 'kept', kinds: ['pipeline.dead_letters'] })
  fault = new PermanentError('it was measured')
  for (const minute of [0, 1, 2]) await watch(at(minute))
  expect(logger.warn).not.toHaveBeenCalled()
  expect(await redis.exists(upkeepKeys.measured(stage.workspaceId))).toBe(0)
  fault = undefined
  await stage.throwErrors([{ atMs: nowMs + 2 * MINUTE_MS + 50 * SECOND_MS, count: 20 }])
  await watch(at(3))
  const [spike] = await take()
  expect(spike).toMatchObject({ kind: 'finding.spiking', ruleName: 'spikes', measured: { value: 20 } })
  // Another process, which has seen nothing, finds the same.
  quiet = new Map()
  await redis.del(upkeepKeys.measured(stage.workspaceId))
  await watch(at(3))
  expect(await take()).toEqual([spike])
})
