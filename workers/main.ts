import { createClickHouse } from '../clickhouse/client.ts'
import { QUEUES } from '../schemas/queues/names.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { createObjectStore } from '../shared/object-store/object-store.ts'
import { connectConsumer } from '../shared/queue/redis.ts'
import { createAdminServer } from '../shared/runtime/admin-server.ts'
import { parseConfig } from '../shared/runtime/config.ts'
import { createLifecycle, runUntilSignal } from '../shared/runtime/lifecycle.ts'
import { createLogger } from '../shared/runtime/logger.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { poolsFromArguments, workersConfigSchema } from './config.ts'
import { createWorkerMetrics } from './metrics.ts'
import { POOLS } from './pools/table.ts'
import { openPayloadReader } from './queue/payload-reader.ts'
import { createJobAdder, startSweeper } from './queue/sweep.ts'

/** A pool that holds jobs and has not moved for so long is wedged: the process is to be restarted. */
const WEDGED_AFTER_MS = 120_000

const config = parseConfig(workersConfigSchema, process.env)
const queues = poolsFromArguments(process.argv.slice(2), QUEUES)
const logger = createLogger('workers', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('workers')
const workerMetrics = createWorkerMetrics(metrics)

const redis = connectConsumer(config.REDIS_URL, logger)
lifecycle.onStop('redis', () => redis.disconnect())
const directoryRedis = connectConsumer(config.CONTROL_REDIS_URL ?? config.REDIS_URL, logger)
lifecycle.onStop('directory redis', () => directoryRedis.disconnect())
const payloads = openPayloadReader(redis, logger, { maxIdleBytes: config.POOL_FETCHED_BYTES })
lifecycle.onStop('payload reader', () => payloads.close())
const clickhouse = createClickHouse({
  url: config.CLICKHOUSE_URL,
  user: config.CLICKHOUSE_USER,
  password: config.CLICKHOUSE_PASSWORD,
  database: config.CLICKHOUSE_DATABASE,
})
lifecycle.onStop('clickhouse', () => clickhouse.close())
const objects = createObjectStore({
  endpoint: config.S3_ENDPOINT,
  region: config.S3_REGION,
  bucket: config.S3_BUCKET,
  accessKeyId: config.AWS_ACCESS_KEY_ID,
  secretAccessKey: config.AWS_SECRET_ACCESS_KEY,
  requestTimeoutMs: 30_000,
})
lifecycle.onStop('object store', () => objects.close())
const jobs = createJobAdder(redis)

const stopping = new AbortController()
const pools = queues.map(queue =>
  POOLS[queue]({
    config,
    redis,
    payloads,
    clickhouse,
    objects,
    releases: createReleaseStore(directoryRedis),
    addJobs: jobs.add,
    logger,
    metrics: workerMetrics,
    stopping: stopping.signal,
  }),
)
for (const pool of pools) {
  workerMetrics.watchPool(pool)
  lifecycle.onStop(`pool ${pool.queue}`, () => pool.close())
}
// An insert may still land in the time a shutdown has; one that waits for an absent store is left to the next worker.
lifecycle.onStop('retries', () => void setTimeout(() => stopping.abort(), config.SHUTDOWN_DEADLINE_MS / 4).unref())

const sweeper = startSweeper({ redis, addJobs: jobs.add, logger }, queues, config.SWEEP_INTERVAL_MS)
lifecycle.onStop('sweeper', () => sweeper.stop())

const admin = createAdminServer({
  registry: metrics.registry,
  isLive: () => {
    // Every pool waits for Redis while it is away; a restart would only make them wait anew.
    if (redis.status !== 'ready') return true
    const wedged = pools.filter(pool => pool.activeJobs > 0 && Date.now() - pool.lastProgressAt > WEDGED_AFTER_MS)
    return wedged.length === 0 || `no progress: ${wedged.map(pool => pool.queue).join(', ')}`
  },
  isReady: () => redis.status === 'ready' || 'redis is not connected',
  logger,
})
lifecycle.onStop('admin server', () => admin.close())
await admin.listen(config.BIND_HOST, config.WORKERS_ADMIN_PORT)
runUntilSignal(lifecycle, logger)
logger.info({ pools: queues }, 'workers are running')
