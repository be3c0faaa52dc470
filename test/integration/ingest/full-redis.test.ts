import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
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

it('a worker waits while Redis is full, and continues when there is room', async () => {
  let warnings = 0
  const logger = pino({ level: 'warn' }, { write: () => void warnings++ })
  const jobs = createJobAdder(redis)
  await jobs.add('spans', [{ jobId: 'waiting', payload: Buffer.from('x'), frames: 1 }])
  await redis.config('SET', 'maxmemory', '1000000')
  const done: string[] = []
  const pool = startPool(
    'spans',
    { redisUrl: server.url, logger, process: async ({ jobId }) => void done.push(jobId) },
    { concurrency: 8, lockMs: 5_000, stalledCheckMs: 60_000 },
  )
  await until('a fetch has failed', () => warnings > 0)
  const since = Date.now()
  await until('a second has passed', () => Date.now() > since + 1_000)
  expect(warnings).toBeLessThan(10)
  await redis.config('SET', 'maxmemory', '0')
  await until('the worker continues', () => done.includes('waiting'))
  await pool.close()
  await jobs.close()
})
