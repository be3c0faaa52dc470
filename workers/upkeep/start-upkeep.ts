import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { DeliveryQueue } from '../../alerts/calling/delivery-queue.ts'
import { eraseAlerts } from '../../alerts/calling/erase-alerts.ts'
import { resealReceivers } from '../../alerts/calling/reseal-receivers.ts'
import type { Sealing } from '../../alerts/delivery/sealing.ts'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectStoredVariants } from '../../clickhouse/queries/findings/select-stored-variants.ts'
import { FindingMovesTable } from '../../clickhouse/tables/finding-moves-table.ts'
import { LetterClaims } from '../../letters/letter-claims.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { eraseComments } from '../../shared/directory/findings/erase-comments.ts'
import { createReleaseStore } from '../../shared/directory/release-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { hasUploads, removeUploads } from '../../shared/queue/remove-uploads.ts'
import { latestTimeMs, readOldestWatermarks, settledBeforeMs } from '../../shared/queue/watermark.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createKnownRules } from '../exceptions/known-rules.ts'
import { insertBuffer } from '../sink/insert-buffer.ts'
import { ObjectDeleter } from './delete-objects.ts'
import { countEdges } from './edges/count-edges.ts'
import { type ElectedTask, runElected } from './elected-task.ts'
import { type ErasePersonDeps, erasePerson } from './erase-person.ts'
import { expireReleases } from './expire-releases.ts'
import { expireWorkspaces } from './expire-workspaces.ts'
import { judgeFailures } from './failures/judge-failures.ts'
import { type GroupStoredDeps, groupAllStored } from './group-stored.ts'
import { rewriteErased } from './rewrite-erased.ts'
import { sweepMaps } from './sweep-maps.ts'
import { sweepUploads } from './sweep-uploads.ts'
import type { UpkeepMetrics } from './upkeep-metrics.ts'
import { type AlertsOfUpkeep, createAlertWatch, createMeasureWatch } from './watch-alerts.ts'

/** Dependencies of the upkeep. */
export interface UpkeepDeps {
  readonly queues: Queues
  readonly directoryRedis: Redis
  /** A client whose statements may take minutes. */
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly retentionDays: number
  readonly logger: Logger
  readonly metrics: UpkeepMetrics
  readonly deliveryQueue: DeliveryQueue
  /** Present while DELIVERY_KEY_PREVIOUS is set. */
  readonly resealing?: Sealing | undefined
  /** Undefined where alerts are not set up: then nothing watches findings. */
  readonly alerts?: AlertsOfUpkeep | undefined
  readonly now?: () => number
}

/** Erasures in progress that one run works on. */
const ERASURES_AT_ONCE = 100

/** Time that a page of stored exceptions may take in ClickHouse. */
const GROUPING_TIMEOUT_MS = 60_000

/** A task that runs once a day. */
const DAILY = { everyMs: DAY_MS, lookEveryMs: 60_000 }
/** A task that runs once a night (UTC), when the day before is over and loads are small where most people sleep. */
const NIGHTLY = { everyMs: DAY_MS, fromHour: 2, lookEveryMs: 10_000, retryAfterMs: 600_000 }

/** Dependencies that the tasks share. */
interface TaskDeps extends Omit<UpkeepDeps, 'objects'> {
  readonly store: ObjectStore
  readonly objects: ObjectDeleter
  readonly directory: ReturnType<typeof createDirectory>
  readonly releases: ReturnType<typeof createReleaseStore>
  readonly stopping: AbortSignal
  readonly now: () => number
}

/**
 * Starts the tasks that delete data on purpose, those that decide which failures count and group exceptions by changed rules, the
 * one that counts which service calls which, and those that watch findings for alerts and
 * measure what rules measure.
 * Every process of the workers may run them, and each task is done by the one that is elected. `stop` resolves when none of them
 * is in a step any more.
 */
export function startUpkeep(deps: UpkeepDeps): { stop(): Promise<void> } {
  const { directoryRedis, logger, metrics, objects: store } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const shared: TaskDeps = {
    ...deps,
    store,
    objects: new ObjectDeleter({ objects: store, onDeleted: metrics.observeObjects, stopping: signal }),
    directory: createDirectory(directoryRedis),
    releases: createReleaseStore(directoryRedis),
    stopping: signal,
    now: deps.now ?? Date.now,
  }
  const electedDeps = { redis: directoryRedis, logger, stopping: signal, onDone: metrics.observeDone }
  const deletions = [
    erasures(shared),
    rewrites(shared),
    retention(shared),
    oldReleases(shared),
    oldUploads(shared),
    unusedMaps(shared),
  ]
  const tasks = [failures(shared), edges(shared), grouping(shared), ...alerts(shared), ...reseal(shared), ...deletions]
  const running = tasks.map(task => runElected(electedDeps, task))
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function erasures(shared: TaskDeps): ElectedTask {
  const { clickhouse, directory, objects, store, queues, logger, metrics, stopping, now } = shared
  const { directoryRedis: redis, deliveryQueue: queue } = shared
  const claims = new LetterClaims(queues, shared.retentionDays)
  const eraseDeps = (assertElected: () => Promise<void>): ErasePersonDeps => ({
    ...{ clickhouse, objects, store, claims, now, assertElected },
    erasures: directory,
    eraseComments: (workspaceId, naming, onStep) => eraseComments(redis, workspaceId, naming, onStep),
    eraseAlerts: (workspaceId, naming) => eraseAlerts({ redis, queue, onStep: assertElected }, workspaceId, naming),
    settledBeforeMs: workspaceId => settledBeforeMs(queues, workspaceId),
    redisTimeMs: () => latestTimeMs(queues),
  })
  async function run(assertElected: () => Promise<void>): Promise<void> {
    const active = await directory.activeErasures(ERASURES_AT_ONCE)
    metrics.observeErasures(active.length)
    for (const erasure of active) {
      const { id, workspaceId, state } = erasure
      try {
        const after = await erasePerson(eraseDeps(assertElected), erasure)
        // The identifier is never logged.
        if (after.state !== state) logger.info({ id, workspaceId, state: after.state, rows: after.rows }, 'erasure')
      } catch (error) {
        stopping.throwIfAborted()
        logger.warn({ id, workspaceId, ...errorFields(error) }, 'an erasure was interrupted, will be continued')
      }
    }
  }
  return { name: 'erasures', everyMs: 0, lookEveryMs: 2_000, run }
}

function rewrites({ clickhouse, directory, logger, now, stopping }: TaskDeps): ElectedTask {
  const deps = { clickhouse, erasures: directory, logger, now, stopping }
  return { name: 'rewrites', ...NIGHTLY, run: assertElected => rewriteErased({ ...deps, assertElected }) }
}

function failures({ clickhouse, directory, directoryRedis: redis, queues }: TaskDeps): ElectedTask {
  const settledBefore = async () => {
    const { settledBeforeMs: settled } = await readOldestWatermarks(queues)
    return Math.min(settled.traces, settled.logs)
  }
  const deps = { clickhouse, redis, settledBeforeMs: settledBefore, rules: createKnownRules(directory) }
  const run = (assertElected: () => Promise<void>) => judgeFailures({ ...deps, assertElected })
  return { name: 'failures', everyMs: 10_000, lookEveryMs: 2_000, run }
}

function edges({ clickhouse, directoryRedis: redis, queues }: TaskDeps): ElectedTask {
  const settledBefore = async () => (await readOldestWatermarks(queues, { beyondLosses: true })).settledBeforeMs.traces
  const deps = { clickhouse, redis, settledBeforeMs: settledBefore }
  const run = (assertElected: () => Promise<void>) => countEdges({ ...deps, assertElected })
  return { name: 'edges', everyMs: 10_000, lookEveryMs: 2_000, run }
}

function alerts({ alerts, directoryRedis: redis, ...shared }: TaskDeps): ElectedTask[] {
  if (alerts === undefined) return []
  const deps = { ...shared, ...alerts, redis }
  return [
    { name: 'alerts', everyMs: 0, lookEveryMs: 1_000, run: createAlertWatch(deps) },
    // Apart from the other, so that what takes long to measure delays no new finding.
    { name: 'measures', everyMs: 0, lookEveryMs: 5_000, run: createMeasureWatch(deps) },
  ]
}

function reseal({ resealing: sealing, directoryRedis: redis, logger }: TaskDeps): ElectedTask[] {
  if (sealing === undefined) return []
  const run = (assertElected: () => Promise<void>) => resealReceivers({ redis, sealing, logger, assertElected })
  return [{ name: 'reseal', everyMs: MINUTE_MS, lookEveryMs: 2_000, run }]
}

function grouping({ clickhouse, directory, logger, stopping }: TaskDeps): ElectedTask {
  const deadline = () => AbortSignal.any([AbortSignal.timeout(GROUPING_TIMEOUT_MS), stopping])
  const deps: Omit<GroupStoredDeps, 'assertElected'> = {
    ...{ directory, logger },
    selectVariants: (workspaceId, page) => selectStoredVariants(clickhouse, { workspaceId, ...page }, deadline()),
    insertMoves(rows) {
      const table = new FindingMovesTable()
      for (const row of rows) table.append(row)
      const timing = { timeoutMs: GROUPING_TIMEOUT_MS, signal: stopping }
      return insertBuffer({ clickhouse, ...timing }, table.buffer, `moves:${randomUUID()}`)
    },
  }
  const run = (assertElected: () => Promise<void>) => groupAllStored({ ...deps, assertElected })
  return { name: 'grouping', everyMs: 0, lookEveryMs: 2_000, run }
}

function retention({ clickhouse, directory, objects, retentionDays, logger, metrics, now }: TaskDeps): ElectedTask {
  const onExpired = (table: string, rows: number) => metrics.observeRows('expired', table, rows)
  const deps = { clickhouse, directory, objects, installationDays: retentionDays, logger, now, onExpired }
  const run = (assertElected: () => Promise<void>) => expireWorkspaces({ ...deps, assertElected })
  return { name: 'retention', everyMs: HOUR_MS, lookEveryMs: 30_000, run }
}

function oldReleases({ queues, directory, directoryRedis, releases, ...shared }: TaskDeps): ElectedTask {
  const { store, objects, logger, now } = shared
  const deps: Omit<Parameters<typeof expireReleases>[0], 'assertElected'> = {
    ...{ directory, directoryRedis, releases, store, objects, logger, now },
    hasUploads: release => hasUploads(queues.common, release),
    removeUploads: release => removeUploads(queues.common, release),
  }
  return { name: 'releases', ...DAILY, run: assertElected => expireReleases({ ...deps, assertElected }) }
}

function oldUploads({ store, objects, now }: TaskDeps): ElectedTask {
  return { name: 'uploads', ...DAILY, run: assertElected => sweepUploads({ store, objects, now, assertElected }) }
}

function unusedMaps({ queues, directoryRedis, clickhouse, directory, releases, ...shared }: TaskDeps): ElectedTask {
  const { store, objects, logger } = shared
  const deps = { redis: queues.common, directoryRedis, clickhouse, directory, releases, store, objects, logger }
  return { name: 'maps', ...DAILY, run: assertElected => sweepMaps({ ...deps, assertElected }) }
}
