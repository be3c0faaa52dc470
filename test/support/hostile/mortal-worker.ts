/**
 * A worker process of the queue `traces` that is killed, as if its memory were exhausted, when it decodes a request that
 * begins with "killer". Its inserts go to a Redis hash by their tokens. Usage: mortal-worker.ts REDIS_URL
 */

import { Redis } from 'ioredis'
import { TextBatch } from '../oracles/text-batch.ts'
import { startTestPool } from '../services/pools.ts'

const redisUrl = process.argv[2] ?? ''
const redis = new Redis(redisUrl)
/** Nothing listens here: only Redis is used. */
const UNUSED = 'http://127.0.0.1:1'

class KilledBatch extends TextBatch {
  override append(...args: Parameters<TextBatch['append']>): ReturnType<TextBatch['append']> {
    if (args[1].toString().startsWith('killer')) process.kill(process.pid, 'SIGKILL')
    return super.append(...args)
  }
}

startTestPool(
  {
    queue: 'traces',
    kind: 'traces',
    createRows: () => new KilledBatch(),
    insert: async ({ table, block }, token) => {
      if (table === 'first') await redis.hset('inserts', token, Buffer.concat(block))
    },
    burnToken: async (_table, token, days) => new Set((await redis.hsetnx('inserts', token, '')) === 1 ? [] : days),
    lockMs: 400,
  },
  {
    redisUrl,
    clickhouseUrl: UNUSED,
    s3: { endpoint: UNUSED, region: 'r', bucket: 'b', accessKeyId: 'a', secretAccessKey: 's' },
  },
)
