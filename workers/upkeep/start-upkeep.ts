import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { LetterClaims } from '../../letters/letter-claims.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { createReleaseStore } from '../../shared/directory/release-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { QueueConnections } from '../../shared/queue/queues.ts'
import { hasUploads, removeUploads } from '../../shared/queue/remove-uploads.ts'
import { latestTimeMs, settledBeforeMs } from '../../shared/queue/watermark.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { ObjectDeleter } from './delete-objects.ts'
import { type ElectedTask, runElected } from './elected-task.ts'
import { type ErasePersonDeps, erasePerson } from './erase-person.ts'
import { expireReleases } from './expire-releases.ts'
import { expireWorkspaces } from './expire-workspaces.ts'
import { sweepMaps } from './sweep-maps.ts'
import { sweepUploads } from './sweep-uploads.ts'
import type { UpkeepMetrics } from './upkeep-metrics.ts'

/** Dependencies of the upkeep. */
export interface UpkeepDeps {
  readonly queues: QueueConnections
  readonly directoryRedis: Redis
  /** A client whose statements may take minutes. */
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly retentionDays: number
  readonly logger: Logger
  readonly metrics: UpkeepMetrics
  readonly now?: () => number
}

/** Erasures in progress that one run works on. */
const ERASURES_AT_ONCE = 100

/**
 * Starts the tasks that delete data on purpose. Every process of the workers may run them, and each task is done by the one
 * that is elected. `stop` resolves when none of them is in a step any more.
 */
export function startUpkeep(deps: UpkeepDeps): { stop(): Promise<void> } {
  const { logger, metrics, now = Date.now } = deps
  const stopping = new AbortController()
  const directory = createDirectory(deps.directoryRedis)
  const claims = new LetterClaims(deps.queues, deps.retentionDays)
  const objects = new ObjectDeleter({
    objects: deps.objects,
    onDeleted: metrics.observeObjects,
    stopping: stopping.signal,
  })
  const eraseDeps = (assertElected: () => Promise<void>): ErasePersonDeps => ({
    clickhouse: deps.clickhouse,
    erasures: directory,
    objects,
    store: deps.objects,
    claims,
    settledBeforeMs: workspaceId => settledBeforeMs(deps.queues, workspaceId),
    redisTimeMs: () => latestTimeMs(deps.queues),
    now,
    assertElected,
  })

  async function runErasures(assertElected: () => Promise<void>): Promise<void> {
    const active = await directory.activeErasures(ERASURES_AT_ONCE)
    metrics.observeErasures(active.length)
    for (const erasure of active) {
      const { id, workspaceId, state } = erasure
      try {
        const after = await erasePerson(eraseDeps(assertElected), erasure)
        // The identifier is never logged.
        if (after.state !== state) logger.info({ id, workspaceId, state: after.state, rows: after.rows }, 'erasure')
      } catch (error) {
        stopping.signal.throwIfAborted()
        logger.warn({ id, workspaceId, ...errorFields(error) }, 'an erasure was interrupted, will be continued')
      }
    }
  }

  const tasks: ElectedTask[] = [
    { name: 'erasures', everyMs: 0, lookEveryMs: 2_000, run: runErasures },
    {
      name: 'retention',
      everyMs: HOUR_MS,
      lookEveryMs: 30_000,
      run: assertElected =>
        expireWorkspaces({
          clickhouse: deps.clickhouse,
          directory,
          objects,
          installationDays: deps.retentionDays,
          logger,
          now,
          assertElected,
          onExpired: (table, rows) => metrics.observeRows('expired', table, rows),
        }),
    },
  ]
  const releases = createReleaseStore(deps.directoryRedis)
  tasks.push({
    name: 'releases',
    everyMs: 24 * HOUR_MS,
    lookEveryMs: 60_000,
    run: assertElected =>
      expireReleases({
        directory,
        directoryRedis: deps.directoryRedis,
        releases,
        hasUploads: release => hasUploads(deps.queues.common, release),
        removeUploads: release => removeUploads(deps.queues.common, release),
        store: deps.objects,
        objects,
        logger,
        now,
        assertElected,
      }),
  })
  tasks.push(
    {
      name: 'uploads',
      everyMs: 24 * HOUR_MS,
      lookEveryMs: 60_000,
      run: assertElected => sweepUploads({ store: deps.objects, objects, now, assertElected }),
    },
    {
      name: 'maps',
      everyMs: 24 * HOUR_MS,
      lookEveryMs: 60_000,
      run: assertElected =>
        sweepMaps({
          redis: deps.queues.common,
          directoryRedis: deps.directoryRedis,
          clickhouse: deps.clickhouse,
          directory,
          releases,
          store: deps.objects,
          objects,
          logger,
          assertElected,
        }),
    },
  )
  const electedDeps = {
    redis: deps.directoryRedis,
    logger,
    stopping: stopping.signal,
    onDone: metrics.observeDone,
  }
  const running = tasks.map(task => runElected(electedDeps, task))
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}
