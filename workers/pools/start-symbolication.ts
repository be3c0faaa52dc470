import { randomUUID } from 'node:crypto'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import { selectReleaseStacks } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import { selectSourceMaps } from '../../clickhouse/queries/releases/select-source-maps.ts'
import { FindingFramesTable } from '../../clickhouse/tables/finding-frames-table.ts'
import { FindingMovesTable } from '../../clickhouse/tables/finding-moves-table.ts'
import { SourceMapsTable } from '../../clickhouse/tables/source-maps-table.ts'
import { poolOptions } from '../config.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { type Pool, startPool } from '../queue/pool.ts'
import { refuseJob } from '../queue/process-frames.ts'
import { Suspects } from '../queue/suspects.ts'
import { createWorkspaceTurns, HELD_JOBS } from '../queue/workspace-turns.ts'
import { insertBuffer } from '../sink/insert-buffer.ts'
import { type SymbolicateJobDeps, symbolicateJob } from '../symbolication/symbolicate-job.ts'

const QUERY_TIMEOUT_MS = 60_000
/**
 * Jobs in progress, one of a workspace at a time. Maps are traced one after the other, for each workspace in turn, and the
 * rest of a job is waiting for stores. A job has at most 4 MiB of stacks.
 */
const CONCURRENT_JOBS = 8

/** Starts the pool that resolves the stacks of exceptions through source maps. */
export function startSymbolicationPool(deps: PoolsDeps): Pool {
  const { config, logger } = deps
  const shared = {
    ...clickhouseAccess(deps),
    ...deps.maps(),
    rules: deps.rules,
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
    },
    poolOptions(config, HELD_JOBS),
  )
  return pool
}

type ClickHouseAccess = Pick<
  SymbolicateJobDeps,
  'selectSourceMaps' | 'selectReleaseStacks' | 'insertSourceMaps' | 'insertFrames' | 'insertMoves'
>

/** Binds the queries and inserts of symbolication to ClickHouse and their deadlines. */
function clickhouseAccess({ clickhouse, config, metrics, stopping }: PoolsDeps): ClickHouseAccess {
  const queryDeadline = () => AbortSignal.any([AbortSignal.timeout(QUERY_TIMEOUT_MS), stopping])

  const timing = { timeoutMs: config.INSERT_TIMEOUT_MS, signal: stopping }
  const insert = (buffer: TableBuffer, token: string) =>
    insertBuffer({ clickhouse, ...timing, onInserted: metrics.observeInsert }, buffer, token)

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
    insertMoves(rows) {
      const table = new FindingMovesTable()
      for (const row of rows) table.append(row)
      return insert(table.buffer, `moves:${randomUUID()}`)
    },
  }
}
