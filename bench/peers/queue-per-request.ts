import { Queue } from 'bullmq'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { MIB } from '../../schemas/units.ts'

/**
 * Serves traces the way a team would build first: Fastify with one BullMQ job per request that contains the body. Tuned: no
 * logging, bodies as buffers, base64 (latin1 would be escaped to three times its size by JSON), commands of one turn of the
 * event loop in one write (`enableAutoPipelining`), completed jobs removed. Redis is the same, so is its fsync. Sources: ioredis'
 * README, "Autopipelining"; BullMQ's guide, "Auto-removal of jobs" and "Going to production"; Fastify's "Recommendations".
 */
const redis = new Redis(process.env.REDIS_URL ?? '', { maxRetriesPerRequest: null, enableAutoPipelining: true })
const queue = new Queue('traces', {
  connection: redis,
  defaultJobOptions: { removeOnComplete: true, attempts: 10, backoff: { type: 'exponential', delay: 500 } },
  streams: { events: { maxLen: 100 } },
})
const keys = new Map([[process.env.PUBLIC_KEY ?? '', { workspaceId: 'ws_1', surfaceId: 'srf_1' }]])
const maxWaiting = Number(process.env.QUEUE_MAX_JOBS ?? Number.POSITIVE_INFINITY)
let waiting = 0
setInterval(() => {
  queue.getJobCountByTypes('waiting', 'active').then(
    count => {
      waiting = count
    },
    () => {},
  )
}, 250)

const app = fastify({ logger: false, bodyLimit: 20 * MIB, keepAliveTimeout: 60_000 })
app.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
app.get('/readyz', async () => 'ok\n')
app.post('/drain/v1/traces', async (request, reply) => {
  const surface = keys.get(String(request.headers['x-service-public-key']))
  if (surface === undefined) return reply.code(401).send({ message: 'unknown key' })
  if (waiting >= maxWaiting) return reply.code(429).header('retry-after', '1').send({ message: 'try again later' })
  const body = (request.body as Buffer).toString('base64')
  await queue.add('traces', { ...surface, receivedAtMs: Date.now(), body })
  waiting++
  reply.header('content-type', 'application/x-protobuf')
  return reply.send('')
})
await queue.waitUntilReady()
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))
