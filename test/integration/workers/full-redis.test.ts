import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { runCli } from '../../support/clients/run-cli.ts'
import { queueOn, queuesAt } from '../../support/queue-on.ts'
import { until } from '../../support/until.ts'

let dir: string
let server: LocalService
let redis: Redis

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-full-'))
  server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis?.disconnect()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

/** A pool that finishes each job as the real ones do, with the logged warnings. */
function startFinishingPool() {
  const warnings: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) })
  const store = new RedisPayloadStore(queueOn(redis, 'traces'))
  const done: string[] = []
  const pool = startPool(
    'traces',
    {
      queues: queuesAt(server.url, redis),
      logger,
      open:
        () =>
        async ({ jobId }) => {
          await store.finishJob(jobId, { frames: 1, bytes: 1, shares: new Map() })
          done.push(jobId)
        },
    },
    { concurrency: 8, lockMs: 5_000, stalledCheckMs: 60_000 },
  )
  return { pool, done, warnings }
}

it('workers take and finish jobs while Redis is full', async () => {
  const jobs = createJobAdder(queueOn(redis))
  await redis.set(queueKeys('traces').payload('waiting'), 'x'.repeat(1_000_000))
  await jobs.add('traces', [{ jobId: 'waiting', payload: Buffer.from('x'), frames: 1 }])
  await redis.config('SET', 'maxmemory', '1000000')
  await expect(redis.set('another', 'value')).rejects.toThrow(/OOM/)
  const { pool, done, warnings } = startFinishingPool()
  await until('the job is done', () => done.includes('waiting'))
  await until(
    'the job is deleted',
    async () => (await redis.keys(`${queueKeys('traces').bull}:*:waiting*`)).length === 0,
  )
  expect(warnings).toEqual([])
  await pool.close()
  await redis.config('SET', 'maxmemory', '0')
  await jobs.close()
})

it('an operator pauses and resumes a queue, and retries and removes jobs while Redis is full', async () => {
  const keys = queueKeys('traces')
  const bull = new Queue('express', { connection: redis, prefix: keys.bull })
  const [job] = await bull.addBulk([{ name: 'by hand', data: {} }])
  const id = job?.id ?? ''
  await redis.multi().lrem(keys.waiting('express'), 0, id).zadd(keys.failed('express'), 1, id).exec()
  await redis.set('large', 'x'.repeat(1_000_000))
  await redis.config('SET', 'maxmemory', '1000000')
  const run = (...words: string[]) => runCli(['queues', ...words], { env: { REDIS_URL: server.url } })
  const done = { code: 0, stderr: '' }
  expect(await run('pause', 'traces')).toMatchObject(done)
  expect(await redis.hexists(keys.settings('express'), 'paused')).toBe(1)
  expect(await run('resume', 'traces')).toMatchObject(done)
  expect(await run('retry', 'traces', id)).toMatchObject(done)
  expect(await run('remove', 'traces', id)).toMatchObject(done)
  expect(await redis.exists(keys.job('express', id))).toBe(0)
  await redis.config('SET', 'maxmemory', '0')
  await redis.del('large')
  await bull.close()
})

it('a worker waits while Redis refuses writes, and continues when it accepts them again', async () => {
  const jobs = createJobAdder(queueOn(redis))
  await jobs.add('traces', [{ jobId: 'later', payload: Buffer.from('x'), frames: 1 }])
  await redis.config('SET', 'min-replicas-to-write', '1')
  const { pool, done, warnings } = startFinishingPool()
  await until('a fetch has failed', () => warnings.length > 0)
  const since = Date.now()
  await until('a second has passed', () => Date.now() > since + 1_000)
  expect(warnings.length).toBeLessThan(10)
  await redis.config('SET', 'min-replicas-to-write', '0')
  await until('the worker continues', () => done.includes('later'))
  await pool.close()
  await jobs.close()
})
