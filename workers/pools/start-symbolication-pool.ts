import { insertNative } from '../../clickhouse/client.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import { selectReleaseStacks } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import { selectSourceMaps } from '../../clickhouse/queries/releases/select-source-maps.ts'
import { FindingFramesTable } from '../../clickhouse/tables/finding-frames-table.ts'
import { SourceMapsTable } from '../../clickhouse/tables/source-maps-table.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { blocksOf } from '../batch/row-batch.ts'
import { createPayloadStore } from '../queue/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { createManifestReader } from '../symbolication/manifest-reader.ts'
import { createMapTracer } from '../symbolication/map-tracer.ts'
import { symbolicateJob } from '../symbolication/symbolicate-job.ts'
import type { PoolsDeps } from './table.ts'

/** As large as a source map may be (CONTRACT 4.6). */
const MAP_LIMIT_BYTES = 64 * 1024 * 1024
const QUERY_TIMEOUT_MS = 60_000
/** Maps are traced one after the other; the rest of a job is waiting. */
const CONCURRENT_JOBS = 4

/** A pool that resolves the stacks of exceptions through source maps. */
export function startSymbolicationPool(deps: PoolsDeps): Pool {
  const { config, logger, clickhouse, objects } = deps
  const tracer = createMapTracer(
    {
      fetchMap: async mapKey => {
        const object = await objects.get(mapKey, MAP_LIMIT_BYTES).catch(error => {
          if (error instanceof PermanentError) return undefined
          throw error
        })
        return object?.body
      },
      logger,
    },
    { cacheBytes: config.SYMBOLICATION_CACHE_BYTES, heldBytes: 2 * MAP_LIMIT_BYTES },
  )
  const queryDeadline = () => AbortSignal.any([AbortSignal.timeout(QUERY_TIMEOUT_MS), deps.stopping])

  async function insert(buffer: TableBuffer, token: string): Promise<void> {
    for (const { table, columns, block } of blocksOf([buffer])) {
      await insertNative(clickhouse, {
        table,
        columns,
        block,
        deduplicationToken: token,
        timeoutMs: config.INSERT_TIMEOUT_MS,
        signal: deps.stopping,
      })
    }
  }

  const symbolication = {
    store: createPayloadStore(deps.redis, 'symbolication'),
    manifests: createManifestReader(deps),
    tracer,
    selectSourceMaps: (owner: { workspaceId: string; surfaceId: string }, debugIds: readonly string[]) =>
      selectSourceMaps(clickhouse, { ...owner, debugIds }, queryDeadline()),
    selectReleaseStacks: (key: Parameters<typeof selectReleaseStacks>[1]) =>
      selectReleaseStacks(clickhouse, key, queryDeadline()),
    insertSourceMaps: (rows: readonly Parameters<SourceMapsTable['append']>[0][], token: string) => {
      const table = new SourceMapsTable()
      for (const row of rows) table.append(row)
      return insert(table.buffer, token)
    },
    insertFrames: (rows: readonly Parameters<FindingFramesTable['append']>[0][], token: string) => {
      const table = new FindingFramesTable()
      for (const row of rows) table.append(row)
      return insert(table.buffer, token)
    },
    addJobs: deps.addJobs,
    logger,
    stopping: deps.stopping,
    now: Date.now,
    onAttempt: () => pool.progress(),
    onDone: deps.metrics.observeSymbolicationJob,
  }
  const pool = startPool(
    'symbolication',
    { redisUrl: config.REDIS_URL, logger, process: job => symbolicateJob(symbolication, job) },
    { concurrency: CONCURRENT_JOBS, lockMs: config.JOB_LOCK_MS, stalledCheckMs: config.JOB_STALLED_CHECK_MS },
  )
  return {
    queue: pool.queue,
    get activeJobs() {
      return pool.activeJobs
    },
    get lastProgressAt() {
      return pool.lastProgressAt
    },
    async close() {
      await pool.close()
      await tracer.close()
    },
  }
}
