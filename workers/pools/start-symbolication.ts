import { insertNative } from '../../clickhouse/client.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import { selectReleaseStacks } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import { selectSourceMaps } from '../../clickhouse/queries/releases/select-source-maps.ts'
import { FindingFramesTable } from '../../clickhouse/tables/finding-frames-table.ts'
import { SourceMapsTable } from '../../clickhouse/tables/source-maps-table.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { blocksOf } from '../batch/row-batch.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { createManifestReader } from '../symbolication/manifest-reader.ts'
import { createMapTracer, type MapTracer } from '../symbolication/tracing/map-tracer.ts'
import { type SymbolicateJobDeps, symbolicateJob } from '../symbolication/symbolicate-job.ts'

/** Bytes of the largest source map (docs/contract.md#source-map-single). */
const MAP_LIMIT_BYTES = 64 * 1024 * 1024
const QUERY_TIMEOUT_MS = 60_000
/** Maps are traced one after the other. The rest of a job is waiting for stores. */
const CONCURRENT_JOBS = 4

/** Starts the pool that resolves the stacks of exceptions through source maps. */
export function startSymbolicationPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const tracer = startTracer(deps)
  const symbolication: SymbolicateJobDeps = {
    ...clickhouseAccess(deps),
    store: new RedisPayloadStore(deps.redis, 'symbolication'),
    manifests: createManifestReader(deps),
    tracer,
    addJobs: deps.addJobs,
    logger,
    stopping: deps.stopping,
    now: Date.now,
    onAttempt: () => pool.progress(),
    onDone: deps.metrics.observeSymbolicationJob,
  }
  const pool = startPool(
    'symbolication',
    {
      redisUrl: config.REDIS_URL,
      logger,
      process: job => symbolicateJob(symbolication, job),
      onClosed: () => tracer.close(),
    },
    poolOptions(config, CONCURRENT_JOBS),
  )
  return pool
}

/** Starts the thread that parses source maps. A map that the object store refuses permanently counts as absent. */
function startTracer({ config, logger, objects }: PoolsDeps): MapTracer {
  const fetchMap = async (mapKey: string) => {
    const object = await objects.get(mapKey, MAP_LIMIT_BYTES).catch(error => {
      if (error instanceof PermanentError) return undefined
      throw error
    })
    return object?.body
  }
  const limits = { cacheBytes: config.SYMBOLICATION_CACHE_BYTES, heldBytes: 2 * MAP_LIMIT_BYTES }
  return createMapTracer({ fetchMap, logger }, limits)
}

type ClickHouseAccess = Pick<
  SymbolicateJobDeps,
  'selectSourceMaps' | 'selectReleaseStacks' | 'insertSourceMaps' | 'insertFrames'
>

/** Binds the queries and inserts of symbolication to ClickHouse and their deadlines. */
function clickhouseAccess({ clickhouse, config, stopping }: PoolsDeps): ClickHouseAccess {
  const queryDeadline = () => AbortSignal.any([AbortSignal.timeout(QUERY_TIMEOUT_MS), stopping])

  async function insert(buffer: TableBuffer, deduplicationToken: string): Promise<void> {
    const timing = { timeoutMs: config.INSERT_TIMEOUT_MS, signal: stopping }
    for (const { table, columns, block } of blocksOf([buffer])) {
      await insertNative(clickhouse, { table, columns, block, deduplicationToken, ...timing })
    }
  }

  return {
    selectSourceMaps: (owner, debugIds) => selectSourceMaps(clickhouse, { ...owner, debugIds }, queryDeadline()),
    selectReleaseStacks: key => selectReleaseStacks(clickhouse, key, queryDeadline()),
    insertSourceMaps(rows, token) {
      const table = new SourceMapsTable()
      for (const row of rows) table.append(row)
      return insert(table.buffer, token)
    },
    insertFrames(rows, token) {
      const table = new FindingFramesTable()
      for (const row of rows) table.append(row)
      return insert(table.buffer, token)
    },
  }
}
