import { pino } from 'pino'
import { afterAll, beforeEach, expect, it } from 'vitest'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { encodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys, SWEEPER_KEYS } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { createJobAdder, sweep } from '../../../workers/queue/sweep.ts'
import { Sweeper } from '../../../workers/queue/sweeper.ts'
import { onOneServer, queueOn } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

/** Payloads that one sweep of a queue looks at: 44 pages of 500. */
const SWEPT_PAYLOADS = 22_000

const logger = pino({ level: 'silent' })
const redis = connectConsumer(`${sharedServices().redisUrl}/12`, logger)
const jobs = createJobAdder(queueOn(redis))
const deps = { queue: queueOn(redis), common: redis, logger, addJobs: jobs.add }
const keys = queueKeys('traces')
let sweepers: Sweeper[] = []

beforeEach(async () => {
  await redis.flushdb()
  return () => {
    for (const sweeper of sweepers) sweeper.stop()
    sweepers = []
  }
})

afterAll(async () => {
  await redis.flushdb()
  await jobs.close()
  redis.disconnect()
})

function startSweeper(): Sweeper {
  const sweeper = new Sweeper({ queues: onOneServer(redis), addJobsOf: () => deps.addJobs, logger: deps.logger }, 200)
  sweepers.push(sweeper)
  return sweeper
}

/** Stores a payload without a job, which arrived at this time. */
async function storeOrphan(queue: QueueName, jobId: string, arrivedAtMs: number): Promise<void> {
  const surface = { workspaceId: 'ws_1', surfaceId: 'srf_1', attributes: '', receivedAtMs: arrivedAtMs }
  const type = { contentType: 'application/json', contentEncoding: 'identity' } as const
  await redis.set(queueKeys(queue).payload(jobId), encodePayload([{ ...surface, ...type, body: Buffer.from('{}') }]))
  await redis.zadd(queueKeys(queue).pending, arrivedAtMs, jobId)
}

/** Adds payloads with jobs to the queue, which arrived one a millisecond. */
async function storeBacklog(count: number): Promise<void> {
  for (let from = 1; from <= count; from += 1_000) {
    const pipeline = redis.pipeline()
    for (let i = from; i < from + 1_000; i++) {
      pipeline.zadd(keys.pending, i, `job-${i}`)
      pipeline.hset(keys.job('express', `job-${i}`), 'name', 'commit')
    }
    await pipeline.exec()
  }
}

const isAdded = async (queue: QueueName, jobId: string) =>
  (await redis.exists(queueKeys(queue).job('express', jobId), queueKeys(queue).job('bulk', jobId))) === 1

it('a sweep costs the same however long a queue is, and the next ones find what it has not looked at (sweep.lua)', async () => {
  await storeBacklog(50_000)
  await storeOrphan('traces', 'oldest', 0.5)
  await storeOrphan('traces', 'in the middle', 30_000.5)
  await storeOrphan('traces', 'newest', 50_000.5)
  await redis.config('RESETSTAT')
  expect(await sweep(deps)).toBe(1)
  expect(await isAdded('traces', 'oldest')).toBe(true)
  const stats = await redis.info('commandstats')
  const calls = (name: string) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
  // The page with the oldest payload does not count.
  expect(calls('zrange')).toBe(SWEPT_PAYLOADS / 500 + 1)
  expect([calls('scan'), calls('keys'), calls('zscan')]).toEqual([0, 0, 0])
  expect(await sweep(deps)).toBe(1)
  expect(await isAdded('traces', 'in the middle')).toBe(true)
  expect(await sweep(deps)).toBe(1)
  expect(await isAdded('traces', 'newest')).toBe(true)
  expect(await redis.hget(SWEEPER_KEYS.cursors, 'spans.0')).toBe(null)
})

it('one sweep adds many missing jobs of a long queue, as after someone has emptied it', async () => {
  const count = SWEPT_PAYLOADS + 8_000
  await storeBacklog(count)
  for (let i = 0; i < count; i += 400) await storeOrphan('traces', `orphan ${i}`, i + 0.5)
  expect(await sweep(deps)).toBe(count / 400)
})

it('one process of several sweeps all queues, and another one takes over when it stops (elect-sweeper.lua, resign-sweeper.lua)', async () => {
  const [first, second] = [startSweeper(), startSweeper()]
  await until('one is elected', () => first.isElected || second.isElected)
  const [elected, other] = first.isElected ? [first, second] : [second, first]
  await storeOrphan('traces', 'a', 0)
  await storeOrphan('replay-chunks', 'b', 0)
  await until(
    'jobs of both queues are added',
    async () => (await isAdded('traces', 'a')) && isAdded('replay-chunks', 'b'),
  )
  expect(other.isElected).toBe(false)
  elected.stop()
  await until('the other one is elected', () => other.isElected)
  await storeOrphan('traces', 'c', 0)
  await until('it sweeps', () => isAdded('traces', 'c'))
})

it('a sweeper that was killed is replaced when its lease ends', async () => {
  await redis.set(SWEEPER_KEYS.lease, 'of a killed process', 'PX', 2_000)
  const next = startSweeper()
  await until('it is elected', () => next.isElected)
  expect(await redis.pttl(SWEEPER_KEYS.lease)).toBeGreaterThan(0)
  await storeOrphan('traces', 'a', 0)
  await until('it sweeps', () => isAdded('traces', 'a'))
})
