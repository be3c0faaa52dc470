import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../../../workers/queue/pool.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { queueOn, queuesAt } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/11`
let redis: Redis
let jobs: ReturnType<typeof createJobAdder>
let pool: Pool | undefined
/** The jobs that the pool has taken, with their times. */
let taken: Map<string, number>

beforeEach(async () => {
  redis = new Redis(url)
  await redis.flushdb()
  jobs = createJobAdder(queueOn(redis))
  taken = new Map()
})
afterEach(async () => {
  await pool?.close()
  await jobs.close()
  redis.disconnect()
})

function start(restMs: number): void {
  const store = new RedisPayloadStore(queueOn(redis, 'traces'))
  pool = startPool(
    'traces',
    {
      queues: queuesAt(url, redis),
      logger: pino({ level: 'silent' }),
      open:
        () =>
        async ({ jobId }) => {
          taken.set(jobId, performance.now())
          await store.finishJob(jobId, { frames: 1, bytes: 1, shares: new Map() })
        },
    },
    { concurrency: 8, lockMs: 5_000, stalledCheckMs: 60_000, restMs },
  )
}

async function add(jobId: string): Promise<void> {
  await redis.set(queueKeys('traces').payload(jobId), 'x')
  await jobs.add('traces', [{ jobId, payload: Buffer.from('x'), frames: 1 }])
}

it('a worker that has emptied its queue rests before the next job, so that requests meanwhile can join it', async () => {
  start(400)
  await add('first')
  await until('the first job is taken', () => taken.has('first'))
  await add('second')
  await until('the second job is taken', () => taken.has('second'))
  // A timer may fire a moment early.
  expect((taken.get('second') as number) - (taken.get('first') as number)).toBeGreaterThan(390)
})

it('a worker takes jobs that wait without a rest', async () => {
  const waiting = Array.from({ length: 20 }, (_, i) => `job-${i}`)
  for (const jobId of waiting) await add(jobId)
  start(60_000)
  await until('all jobs are taken', () => waiting.every(jobId => taken.has(jobId)))
})
