import { readWaitingDeliveries } from '../alerts/calling/waiting-deliveries.ts'
import { saveRequestCounts } from '../clickhouse/queries/audit/save-request-counts.ts'
import { hasQueue, POOL_NAMES } from '../schemas/queues/names.ts'
import { createQueueLoads } from '../shared/queue/watch/queue-loads.ts'
import { startHeartbeat } from '../shared/queue/watch/worker-heartbeats.ts'
import { createAdminServer } from '../shared/runtime/admin-server.ts'
import { errorFields } from '../shared/runtime/errors.ts'
import { prepareHeap } from '../shared/runtime/heap.ts'
import { createLifecycle, runUntilSignal } from '../shared/runtime/lifecycle.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { listenAt } from '../shared/runtime/process/listen-at.ts'
import { openProcess } from '../shared/runtime/process/open-process.ts'
import { backUpRegularly } from './back-up-regularly.ts'
import { faultOfPools, poolsOf, workersConfigSchema } from './config.ts'
import { connectWorkers } from './connect.ts'
import { Liveness } from './liveness.ts'
import { createWorkerMetrics } from './metrics.ts'
import { POOLS } from './pools/table.ts'
import { readWaitingJobs } from './queue/backlog.ts'
import { Sweeper } from './queue/sweeper.ts'
import { usesObjects } from './store-access.ts'
import { startUpkeep } from './upkeep/start-upkeep.ts'

/** Time between two copies of the counts of requests into ClickHouse. */
const SAVE_COUNTS_EVERY_MS = 60_000
/** Time between two observations of the jobs that wait. */
const OBSERVE_EVERY_MS = 10_000

const { config, values, logger } = openProcess({
  name: 'workers',
  schema: workersConfigSchema,
  env: process.env,
  usage: `workers [--pools NAME,NAME] [--version] [--help]: without --pools, all of ${POOL_NAMES.join(', ')}`,
  options: { pools: { type: 'string' } },
  faultOf: ({ pools }) => faultOfPools(pools),
})
const names = poolsOf(values.pools)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
runUntilSignal(lifecycle, logger)
const processMetrics = createMetrics('workers')
const metrics = createWorkerMetrics(processMetrics)

const stopping = new AbortController()
const {
  deps,
  queues: connections,
  directoryRedis,
  upkeep: upkeepDeps,
  directory,
  installation,
  isReady,
} = connectWorkers(config, { queues: names, logger, lifecycle, metrics, processMetrics }, stopping.signal)
const heartbeat = startHeartbeat(deps.redis, names)
lifecycle.onStop('heartbeat', () => heartbeat.stop())
const pools = names.map(name => POOLS[name](deps))
for (const pool of pools) {
  metrics.watchPool(pool)
  lifecycle.onStop(`pool ${pool.queue}`, () => pool.close())
}
// An insert may still succeed within the deadline of a shutdown. One that waits for an unavailable store is left to the
// next worker.
lifecycle.onStop('retries', () => void setTimeout(() => stopping.abort(), config.SHUTDOWN_DEADLINE_MS / 4).unref())

const sweeper = new Sweeper(
  { queues: connections, addJobsOf: queue => deps.accessTo(queue).addJobs, logger },
  config.SWEEP_INTERVAL_MS,
)
lifecycle.onStop('sweeper', () => sweeper.stop())

// A process whose pools need no object store may have no access to it.
if (usesObjects(names)) {
  const [intervalMs, keep] = [config.DIRECTORY_BACKUP_INTERVAL_S * 1_000, config.DIRECTORY_BACKUP_KEEP]
  const regularBackups = installation.whileMayUse(['directory', 'bucket'], () =>
    backUpRegularly(directory, { intervalMs, keep }),
  )
  lifecycle.onStop('backups', () => void regularBackups.stop())
  const upkeep = installation.whileMayUse(['directory', 'clickhouse', 'bucket'], () => startUpkeep(upkeepDeps))
  lifecycle.onStop('upkeep', () => upkeep.stop())
}
const saveCounts = async () => {
  // Also marks queues that are new or have lost their data, whose counts begin again.
  await installation.check()
  if (installation.mayUse(['queues', 'clickhouse'])) {
    await saveRequestCounts(connections, deps.clickhouse, Date.now())
  }
}
const saving = setInterval(() => {
  if (deps.redis.status !== 'ready') return
  saveCounts().catch(error => logger.warn(errorFields(error), 'the counts of requests could not be saved'))
}, SAVE_COUNTS_EVERY_MS)
lifecycle.onStop('counts of requests', () => clearInterval(saving))

const liveness = new Liveness(pools)
const observing = setInterval(() => {
  void readWaitingJobs(connections, names.filter(hasQueue)).then(waiting => liveness.observe(waiting))
}, OBSERVE_EVERY_MS)
lifecycle.onStop('liveness', () => clearInterval(observing))

const isRedisReady = () => deps.redis.status === 'ready'
const admin = createAdminServer({
  registry: processMetrics.registry,
  isLive: () => {
    const wedged = isRedisReady() ? liveness.wedged() : []
    return wedged.length === 0 || `no progress: ${wedged.join(', ')}`
  },
  isReady,
  readQueues: createQueueLoads(connections, () => readWaitingDeliveries(directoryRedis)),
  logger,
})
lifecycle.onStop('admin server', () => admin.close())
await listenAt(admin, {
  ...{ host: config.ADMIN_BIND_HOST, hostSetting: 'ADMIN_BIND_HOST' },
  ...{ port: config.WORKERS_ADMIN_PORT, portSetting: 'WORKERS_ADMIN_PORT' },
})
prepareHeap()
logger.info({ pools: names }, 'workers are running')
