/**
 * A worker process of the queue `spans` that is killed, as if its memory were exhausted, when it decodes a request that
 * begins with "killer". Its inserts go to a Redis hash by their tokens. Usage: mortal-worker.ts REDIS_URL
 */

import { Redis } from 'ioredis'
import { MIB } from '../../../schemas/units.ts'
import { QueueServers } from '../../../shared/queue/registry/queue-servers.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { BatchPool } from '../../../workers/sink/batch-pool.ts'
import { ColumnMemory } from '../../../workers/sink/column-memory.ts'
import { JOB_LIMITS } from '../../../workers/sink/job-limits.ts'
import { ExpressFirst } from '../../../workers/sink/pace/express-first.ts'
import { InsertPace } from '../../../workers/sink/pace/insert-pace.ts'
import { BatchStorer } from '../../../workers/sink/store-batch.ts'
import { TextBatch } from '../oracles/text-batch.ts'

const redisUrl = process.argv[2] ?? ''
const redis = new Redis(redisUrl)
const logger = createLogger('workers', 'silent')
const store = new RedisPayloadStore(redis, 'spans')
const source = { queue: 'spans', kind: 'traces' } as const

class KilledBatch extends TextBatch {
  override append(...args: Parameters<TextBatch['append']>): ReturnType<TextBatch['append']> {
    if (args[1].toString().startsWith('killer')) process.kill(process.pid, 'SIGKILL')
    return super.append(...args)
  }
}

const storer = new BatchStorer({
  ...source,
  store,
  insert: async ({ table, block }, token) => {
    if (table === 'first') await redis.hset('inserts', token, Buffer.concat(block))
  },
  burnToken: async (_table, token, days) => new Set((await redis.hsetnx('inserts', token, '')) === 1 ? [] : days),
  addJobs: createJobAdder(redis).add,
  logger,
  stopping: new AbortController().signal,
})
const batches = new BatchPool(
  {
    ...source,
    store,
    storer,
    createRows: () => new KilledBatch(),
    logger,
    lane: 'express',
    memory: new ColumnMemory(),
    expressFirst: new ExpressFirst(),
    pace: new InsertPace({ redis, logger }, { queue: 'spans', lane: 'express', intervalMs: 20 }),
  },
  {
    maxRows: 50,
    maxBytes: MIB,
    maxConcurrentInserts: 2,
    maxWaitMs: 1_000,
    maxFetchedBytes: MIB,
    jobLimits: JOB_LIMITS,
  },
)
startPool(
  'spans',
  {
    servers: new QueueServers(redisUrl),
    logger,
    process: job => batches.process(job),
    onClosing: () => batches.close(),
  },
  { concurrency: 32, lockMs: 400, stalledCheckMs: 200 },
)
