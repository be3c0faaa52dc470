import { pino } from 'pino'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDroppingStore } from '../../../shared/directory/dropping-store.ts'
import { createFindingRulesStore } from '../../../shared/directory/findings/finding-rules-store.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { createScrubbingStore } from '../../../shared/directory/scrubbing-store.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { Lane } from '../../../shared/queue/queue.ts'
import { Queues, type RedisQueue } from '../../../shared/queue/queues.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { FollowedQueues } from '../../../shared/queue/registry/queue-feed.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { letterLimits, workersConfigSchema } from '../../../workers/config.ts'
import { createAccess } from '../../../workers/connect.ts'
import type { PoolsDeps } from '../../../workers/deps.ts'
import { createKnownDropping } from '../../../workers/dropping/known-dropping.ts'
import { createKnownRules } from '../../../workers/exceptions/known-rules.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { createBatches, type RowsPlan, startBatches } from '../../../workers/pools/start-batches.ts'
import { startExceptionsPool } from '../../../workers/pools/start-exceptions.ts'
import { clickhouseInserts } from '../../../workers/pools/start-rows.ts'
import { POOLS } from '../../../workers/pools/table.ts'
import { readInternalBacklogs } from '../../../workers/queue/backlog.ts'
import { RedisLetterQuota } from '../../../workers/queue/letter-quota.ts'
import { createPageClaims } from '../../../workers/queue/page-claims.ts'
import type { TakenJob } from '../../../workers/queue/pool.ts'
import { CONDEMN_AFTER } from '../../../workers/queue/repeated-failures.ts'
import { createKnownScrubbing } from '../../../workers/scrubbing/known-scrubbing.ts'
import type { BatchPool } from '../../../workers/sink/batch-pool.ts'
import { ColumnMemory } from '../../../workers/sink/column-memory.ts'
import { JOB_LIMITS } from '../../../workers/sink/job-limits.ts'
import { ExpressFirst } from '../../../workers/sink/pace/express-first.ts'
import { InsertPace } from '../../../workers/sink/pace/insert-pace.ts'
import { createMapAccess } from '../../../workers/symbolication/map-access.ts'
import { connectDatabase } from '../cluster/connect.ts'
import type { ServiceAddresses } from './services.ts'

/** Pools that run in this process. */
export interface TestPools {
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

interface TestAddresses extends ServiceAddresses {
  /** The directory is in the same database of Redis unless this names another. */
  readonly directoryRedisUrl?: string
}

/**
 * Starts pools of the workers in this process; `redisUrl` names the database of Redis, `database` that of ClickHouse.
 * `settings` replace defaults. Exceptions wait up to `lookUpMs` for their findings.
 */
export function startPools(
  queues: readonly QueueName[],
  addresses: TestAddresses,
  database: string,
  settings: Record<string, string> = {},
  lookUpMs?: number,
): TestPools {
  const { deps, metrics, stopping, close } = connectPools(addresses, database, settings)
  const pools = queues.map(queue => (queue === 'exceptions' ? startExceptionsPool(deps, lookUpMs) : POOLS[queue](deps)))
  return {
    metrics,
    async stop() {
      stopping.abort()
      await Promise.all(pools.map(pool => pool.close()))
      await close()
    },
  }
}

type Replaced = Partial<Omit<RowsPlan, 'options' | 'queue' | 'kind' | 'createRows'>>

/** A pool of rows, of which a test replaces what it needs to see or to change. */
interface TestPlan extends Replaced, Pick<RowsPlan, 'queue' | 'kind' | 'createRows'> {
  /** Returns an insert that sees or changes the one of the plan. */
  readonly wrapInsert?: (insert: RowsPlan['insert']) => RowsPlan['insert']
  /** Time between two inserts of a lane. */
  readonly intervalMs?: number
  readonly options?: Partial<RowsPlan['options']>
  readonly lockMs?: number
  /** False if the pool processes only what the test passes to `batches`. */
  readonly takesJobs?: boolean
}

/** Bounds that a few requests reach. */
const SMALL_BATCHES: RowsPlan['options'] = {
  maxRows: 50,
  maxBytes: MIB,
  maxConcurrentInserts: 2,
  maxWaitMs: 1_000,
  maxFetchedBytes: MIB,
  jobLimits: JOB_LIMITS,
}

/** Starts one pool of rows on the wiring of the workers. It has the express lane, and inserts into ClickHouse by default. */
export function startTestPool(plan: TestPlan, addresses: TestAddresses, database = 'default') {
  const { queue, intervalMs = 20, lockMs = 5_000, takesJobs = true, wrapInsert, options, ...replaced } = plan
  const { deps, stopping, close } = connectPools(addresses, database, {})
  const paceOf = (lane: Lane) => new InsertPace(deps, { queue, lane, intervalMs })
  const inserts = { ...clickhouseInserts(deps), ...replaced }
  const rows: RowsPlan = {
    ...inserts,
    ...{ lanes: ['express', 'bulk'], paceOf, condemnAfter: CONDEMN_AFTER, onJobDecoded() {} },
    ...replaced,
    queue,
    insert: wrapInsert?.(inserts.insert) ?? inserts.insert,
    options: { ...SMALL_BATCHES, ...options },
  }
  const started = takesJobs
    ? startBatches(rows, deps, { concurrency: 32, lockMs, stalledCheckMs: 200 })
    : { batches: createBatches(rows, deps, { attempted() {}, progress() {} }), pool: undefined }
  const { store, storer, lanes } = started.batches.of(deps.queues.of(queue)[0] as RedisQueue)
  let closed: Promise<void> | undefined
  return {
    store,
    storer,
    memory: deps.columnMemory,
    stopping,
    /** Processes a job as if the pool had taken it. */
    process: (job: TakenJob) => (lanes.get(job.lane) as BatchPool).process(job),
    /** Inserts every batch at once from now on. */
    closeBatches: () => started.batches.close(),
    /** Takes no more jobs, and waits for those in progress. */
    closePool: async () => started.pool?.close(),
    close: () =>
      (closed ??= (async () => {
        stopping.abort()
        await started.pool?.close()
        started.batches.close()
        await close()
      })()),
  }
}

/** Connects everything that the pools of a process share. */
function connectPools(
  { redisUrl, directoryRedisUrl = redisUrl, clickhouseUrl, s3 }: TestAddresses,
  database: string,
  settings: Record<string, string>,
) {
  const logger = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const config = parseConfig(workersConfigSchema, {
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: directoryRedisUrl,
    BATCH_MAX_AGE_MS: '20',
    JOB_STALLED_CHECK_MS: '500',
    ...settings,
  })
  const queues = new Queues(redisUrl, to => connectConsumer(to, logger))
  const redis = queues.common
  const directoryRedis = connectConsumer(directoryRedisUrl, logger)
  const clickhouse = connectDatabase(clickhouseUrl, database)
  const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  const closers: (() => unknown)[] = []
  const lifecycle = { onStop: (_name: string, close: () => unknown) => void closers.push(close) }
  const followed = new FollowedQueues({ queues, logger })
  const metrics = createMetrics('test')
  const stopping = new AbortController()
  const releases = createReleaseStore(directoryRedis)
  const stores = {
    redis,
    queues: followed,
    clickhouse,
    objects,
    releases,
    rules: createKnownRules(createFindingRulesStore(directoryRedis)),
    scrubbing: createKnownScrubbing(createScrubbingStore(directoryRedis)),
    dropping: createKnownDropping(createDroppingStore(directoryRedis)),
    columnMemory: new ColumnMemory(),
    expressFirst: new ExpressFirst(),
    pageClaims: createPageClaims(redis),
  }
  const workerMetrics = createWorkerMetrics(metrics)
  workerMetrics.watchBacklogs(() => readInternalBacklogs(queues))
  const letterQuota = new RedisLetterQuota(redis, letterLimits(config), workerMetrics.observeLetters)
  const accessTo = createAccess(config, logger, lifecycle)
  const shared = { accessTo, config, letterQuota, logger, stopping: stopping.signal, metrics: workerMetrics }
  const maps = createMapAccess({ ...shared, redis, objects, releases }, lifecycle)
  const deps: PoolsDeps = { ...stores, ...shared, maps }
  return {
    deps,
    stopping,
    metrics: () => metrics.registry.metrics(),
    async close() {
      followed.stop()
      for (const close of closers) await close()
      objects.close()
      await clickhouse.close()
      queues.close()
      directoryRedis.disconnect()
    },
  }
}
