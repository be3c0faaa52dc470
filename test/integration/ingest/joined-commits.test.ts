import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { GroupCommit } from '../../../ingest/commit/group-commit.ts'
import { MIB } from '../../../schemas/units.ts'
import { BufferPool } from '../../../shared/memory/buffer-pool.ts'
import { isPacked } from '../../../shared/queue/packed-payload.ts'
import { decodePayload } from '../../../shared/queue/payload-frame.ts'
import { OPEN_PAYLOAD_BYTES, openQueue, queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer, connectProducer } from '../../../shared/queue/redis.ts'
import { openPayloadReader, type PayloadReader } from '../../../workers/queue/payloads/payload-reader.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { sweep } from '../../../workers/queue/sweep.ts'
import { commitBody, openExpressCommits } from '../../support/express-commits.ts'
import { queueOn } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const keys = queueKeys('traces')
/** Enough to be packed, and too much to join a payload. */
const LARGE_BYTES = 800_000
const LIMITS = { maxCommitBytes: 4 * MIB, maxCommitFrames: 512, timeoutMs: 5_000 }
const logger = pino({ level: 'silent' })
let redis: Redis
let producer: Redis
let commits: GroupCommit
let reader: PayloadReader
let store: RedisPayloadStore
/** The clock of the jobs. It stands still, because commits join a job for 0.1 s only, which a busy disk needs for a few of them. */
let now = () => 0

beforeEach(async () => {
  const url = `${sharedServices().redisUrl}/6`
  redis = connectConsumer(url, logger)
  await redis.flushdb()
  producer = connectProducer(url, 5_000, logger)
  now = () => 0
  commits = openExpressCommits(producer, LIMITS, 'traces', new BufferPool(8 * MIB), () => now())
  reader = openPayloadReader(redis, logger, { maxIdleBytes: MIB })
  store = new RedisPayloadStore(queueOn(redis, 'traces'), reader)
  await until('the queue is open', async () => {
    await send('first').catch(() => {})
    return (await redis.scard(keys.open)) === 1
  })
})

afterEach(async () => {
  await commits.drain()
  reader.close()
  redis.disconnect()
  producer.disconnect()
})

const send = (text: string, bytes = 0) => commitBody(commits, text.padEnd(bytes))

const jobIds = () => redis.zrange(keys.pending, 0, '-1')

/** Reads the payload of a job as a worker does, and returns its requests. */
async function take(jobId: string): Promise<string[]> {
  const { payload } = await store.look(jobId)
  return payload === null ? [] : decodePayload(payload).map(frame => frame.body.toString('latin1').trim())
}

it('requests join the payload of the newest job as long as no worker has read it', async () => {
  await send('second')
  await send('third')
  const [job, ...others] = await jobIds()
  expect(others).toEqual([])
  expect(await take(job as string)).toEqual(['first', 'second', 'third'])

  await send('fourth')
  const [same, next] = await jobIds()
  expect(same).toBe(job)
  expect(await take(job as string)).toEqual(['first', 'second', 'third'])
  expect(await take(next as string)).toEqual(['fourth'])
  expect(await redis.scard(keys.open)).toBe(0)
})

it('counts requests that have joined like any other', async () => {
  await send('second', 1_000)
  await send('third', 2_000)
  const [job] = await jobIds()
  const { payload } = await store.look(job as string)
  const bytes = payload?.length
  expect(await redis.hgetall(keys.flow)).toEqual({
    acceptedPayloads: '3',
    acceptedBytes: String(bytes),
    acceptedCost: '3',
  })
  expect(await redis.zscore(keys.shares, 'ws_a/srf_a')).toBe('3')
})

it('begins another job when the payload is full, and for a large commit', async () => {
  for (const text of ['second', 'third', 'fourth', 'fifth', 'sixth']) await send(text, 200_000)
  await send('seventh', 200_000)
  await send('large', OPEN_PAYLOAD_BYTES)
  await send('last')
  const jobs = await jobIds()
  expect(await Promise.all(jobs.map(take))).toEqual([
    ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'],
    ['seventh', 'last'],
    ['large'],
  ])
})

it('packs large commits whose bodies came uncompressed, and none that joins a payload', async () => {
  await send('second', 200_000)
  await send('third', 200_000)
  await send('large', LARGE_BYTES)
  const [open, large] = (await jobIds()) as [string, string]
  expect((await redis.lrangeBuffer(keys.joined(open), 0, -1)).map(isPacked)).toEqual([false, false])
  expect(await redis.strlen(keys.payload(large))).toBeLessThan(10_000)
  const bytes = await Promise.all([open, large].map(async job => (await store.payload(job))?.length ?? 0))
  expect(await redis.hget(keys.flow, 'acceptedBytes')).toBe(String(bytes.reduce((sum, size) => sum + size)))
  expect(await Promise.all([open, large].map(take))).toEqual([['first', 'second', 'third'], ['large']])
})

it('does not pack bodies that came compressed, nor those that random bytes make incompressible', async () => {
  await commitBody(commits, 'gzip'.padEnd(LARGE_BYTES), 'gzip')
  await commitBody(commits, randomBytes(LARGE_BYTES))
  const [, ...large] = await jobIds()
  const payloads = await Promise.all(large.map(job => redis.getBuffer(keys.payload(job))))
  expect(payloads.map(payload => payload && [isPacked(payload), payload.length > LARGE_BYTES])).toEqual([
    [false, true],
    [false, true],
  ])
})

it('stores every request once while workers read payloads', async () => {
  now = () => performance.now()
  const COUNT = 1_500
  const sending = (async () => {
    for (let i = 0; i < COUNT; i += 3) await Promise.all([send(`r${i}`), send(`r${i + 1}`), send(`r${i + 2}`)])
  })()
  const seen: string[] = []
  const taken = new Set<string>()
  await until('every request was read', async () => {
    for (const job of await jobIds()) {
      if (taken.has(job)) continue
      taken.add(job)
      seen.push(...(await take(job)))
    }
    return seen.length >= COUNT + 1
  })
  await sending
  expect(taken.size).toBeGreaterThan(10)
  // A payload that was read is the same when it is read again.
  const again = (await Promise.all([...taken].map(take))).flat()
  expect(again.sort()).toEqual([...seen].sort())
  expect(seen.filter(text => text.startsWith('r')).sort()).toEqual(
    Array.from({ length: COUNT }, (_, i) => `r${i}`).sort(),
  )
})

it('uses the memory of one lane for the commits of the others', async () => {
  const used = new Set<unknown>()
  class WatchedPool extends BufferPool {
    override take(length: number): Buffer {
      const buffer = super.take(length)
      used.add(buffer.buffer)
      return buffer
    }
  }
  const memory = new WatchedPool(32 * MIB)
  const queues = ['logs', 'metrics', 'sessions'] as const
  const lanes = queues.map(queue => openExpressCommits(producer, LIMITS, queue, memory))
  for (const lane of lanes) {
    const accepts = () =>
      commitBody(lane, 'first').then(
        () => true,
        () => false,
      )
    await until('the queue is open', accepts)
    for (let i = 0; i < 4; i++) await commitBody(lane, 'next')
  }
  await Promise.all(lanes.map(lane => lane.drain()))
  expect(used.size).toBe(1)
})

it('deletes the requests that have joined with their payload', async () => {
  await send('second')
  const [job] = (await jobIds()) as [string]
  await commits.drain()
  await take(job)
  expect(await redis.exists(keys.payload(job), keys.joined(job))).toBe(2)
  const done = { frames: 2, bytes: 1, shares: new Map([['ws_a/srf_a', 2]]) }
  expect(await store.finishJob(job, done)).toEqual({ isFirst: true, leftOut: [] })
  expect(await redis.exists(keys.payload(job), keys.joined(job))).toBe(0)
})

it('adds one job for the requests of ten milliseconds, and the sweeper adds the job that is missing', async () => {
  const queue = openQueue(redis.duplicate(), queueKeys('traces'), 'express')
  try {
    await commits.drain()
    for (let i = 0; i < 20; i++) await send(`r${i}`)
    await commits.drain()
    const jobs = await jobIds()
    expect((await queue.getJobs(['waiting'])).map(job => job.id).sort()).toEqual([...jobs].sort())

    await queue.obliterate({ force: true })
    const added: string[] = []
    const addJobs = async (_: string, payloads: readonly { jobId: string }[]) => {
      added.push(...payloads.map(payload => payload.jobId))
    }
    expect(await sweep({ queue: queueOn(redis), common: redis, logger, addJobs, now: () => Date.now() + 60_000 })).toBe(
      jobs.length,
    )
    expect(added.sort()).toEqual([...jobs].sort())
  } finally {
    await queue.close()
  }
})

it('fails a request that a server has confirmed which could lose it', async () => {
  let isKept = true
  const own = openExpressCommits(producer, LIMITS, 'traces', new BufferPool(8 * MIB), now, () => isKept)
  const commit = () => commitBody(own, 'a')
  await until('the queue is open', () =>
    commit().then(
      () => true,
      () => false,
    ),
  )
  const committed = commit()
  isKept = false
  await expect(committed).rejects.toThrow('redis has confirmed the write and could lose it')
  await expect(async () => commit()).rejects.toThrow('redis is not connected')
})
