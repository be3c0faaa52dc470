import { getHeapStatistics } from 'node:v8'
import { insertNative } from '../../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../../clickhouse/cluster/shard-units.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import { selectReleaseStacks } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import { selectSourceMaps } from '../../clickhouse/queries/releases/select-source-maps.ts'
import { FindingFramesTable } from '../../clickhouse/tables/finding-frames-table.ts'
import { SourceMapsTable } from '../../clickhouse/tables/source-maps-table.ts'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import { MIB } from '../../schemas/units.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { poolOptions, symbolicationHeapBytes } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { refuseJob } from '../queue/process-frames.ts'
import { Suspects } from '../queue/suspects.ts'
import { createWorkspaceTurns, HELD_JOBS } from '../queue/workspace-turns.ts'
import { blocksOf } from '../sink/row-batch.ts'
import { shardBlocks } from '../sink/shard-blocks.ts'
import { createManifestReader } from '../symbolication/manifest-reader.ts'
import { type SymbolicateJobDeps, symbolicateJob } from '../symbolication/symbolicate-job.ts'
import { createMapGuards } from '../symbolication/tracing/map-guards.ts'
import { createMapTracer, type MapTracer, TRACE_DEADLINE_MS } from '../symbolication/tracing/map-tracer.ts'

const QUERY_TIMEOUT_MS = 60_000
/**
 * Jobs in progress, one of a workspace at a time. Maps are traced one after the other, for each workspace in turn, and the
 * rest of a job is waiting for stores. A job has at most 4 MiB of stacks.
 */
const CONCURRENT_JOBS = 8

/** Memory for parsed source maps in the process that parses them, at most a quarter of its heap. */
const CACHE_BYTES = 256 * MIB

/** Starts the pool that resolves the stacks of exceptions through source maps. */
export function startSymbolicationPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const tracer = deps.metrics.watchCache('source_maps', startTracer(deps))
  const shared = {
    ...clickhouseAccess(deps),
    manifests: deps.metrics.watchCache('manifests', createManifestReader(deps)),
    tracer,
    letterQuota: deps.letterQuota,
    logger,
    stopping: deps.stopping,
    now: Date.now,
    onAttempt: (attempt: number) => pool.attempted(attempt),
    onSuccess: () => pool.progress(),
    onDone: deps.metrics.observeSymbolicationJob,
  }
  let isClosing = false
  const inTurn = createWorkspaceTurns(() => isClosing, CONCURRENT_JOBS)
  const pool = startPool(
    'symbolication',
    {
      queues: deps.queues,
      logger,
      open: queue => {
        const store = new RedisPayloadStore(queue)
        const suspects = new Suspects(store, logger)
        const symbolication: SymbolicateJobDeps = { ...shared, store, addJobs: deps.accessTo(queue).addJobs }
        return job =>
          inTurn(queue, job.jobId, () =>
            suspects.run(job, {
              process: () => symbolicateJob(symbolication, job),
              setAside: reason => refuseJob(symbolication, 'symbolication', job, reason),
            }),
          )
      },
      onClosing: () => {
        isClosing = true
      },
      onClosed: () => tracer.close(),
    },
    poolOptions(config, HELD_JOBS),
  )
  return pool
}

/** Creates the tracer of source maps. A map that the object store refuses permanently counts as absent. */
function startTracer({ config, logger, objects, redis }: PoolsDeps): MapTracer {
  const openMap = async (mapKey: string) => {
    const object = await objects.getStream(mapKey).catch(error => {
      if (error instanceof PermanentError) return undefined
      throw error
    })
    if (object === undefined || object.size <= SOURCE_MAP_MAX_BYTES) return object
    object.body.destroy()
    return undefined
  }
  // A worker waits longer for another one than that one may take.
  const guards = createMapGuards(redis, 2 * TRACE_DEADLINE_MS)
  const heapBytes = symbolicationHeapBytes(config, getHeapStatistics().heap_size_limit)
  const limits = { heapBytes, cacheBytes: CACHE_BYTES }
  return createMapTracer({ openMap, guards, logger }, limits)
}

type ClickHouseAccess = Pick<
  SymbolicateJobDeps,
  'selectSourceMaps' | 'selectReleaseStacks' | 'insertSourceMaps' | 'insertFrames'
>

/** Binds the queries and inserts of symbolication to ClickHouse and their deadlines. */
function clickhouseAccess({ clickhouse, config, metrics, stopping }: PoolsDeps): ClickHouseAccess {
  const queryDeadline = () => AbortSignal.any([AbortSignal.timeout(QUERY_TIMEOUT_MS), stopping])

  async function insert(buffer: TableBuffer, deduplicationToken: string): Promise<void> {
    const timing = { timeoutMs: config.INSERT_TIMEOUT_MS, signal: stopping }
    const shards = (await clickhouse.shards?.active()) ?? 1
    for (const { table: unit, columns, block } of shardBlocks(blocksOf([buffer]), shards, deduplicationToken)) {
      const table = tableOfUnit(unit)
      await onShardOfUnit(clickhouse, unit, shard =>
        insertNative(shard, { table, columns, block, deduplicationToken, ...timing }),
      )
      metrics.observeInsert(table)
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
