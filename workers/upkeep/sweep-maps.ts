import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { deleteCountedRows } from '../../clickhouse/queries/retention/delete-counted-rows.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { sourceMapKey, sourceMapPrefix } from '../../shared/object-store/object-keys.ts'
import type { ListedObject, ObjectStore } from '../../shared/object-store/types.ts'
import { redisTimeMs } from '../../shared/queue/watermark.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ObjectDeleter } from './delete-objects.ts'
import { UnusedMaps } from './unused-maps.ts'
import { findUsedMaps, UnreadableManifest, type UsedMaps, type UsedMapsDeps } from './used-maps.ts'

/** Dependencies of deleting maps that are not used. */
export interface SweepMapsDeps extends UsedMapsDeps {
  readonly directoryRedis: Redis
  readonly directory: Pick<Directory, 'workspaces'>
  readonly clickhouse: ClickHouseClient
  readonly store: Pick<ObjectStore, 'getStream' | 'list'>
  readonly objects: Pick<ObjectDeleter, 'delete'>
  readonly logger: Logger
}

/** Maps stay this long after they were first found to be unused (docs/api/releases.md#unused-maps). */
export const UNUSED_FOR_MS = 7 * DAY_MS
/** A younger object is left alone: the completion that has stored it may be in progress. */
const YOUNG_MS = DAY_MS
/** An entry of the list that is older has no object any more: every run sees each object. */
const FORGOTTEN_MS = 4 * UNUSED_FOR_MS
const STATEMENT_TIMEOUT_MS = 300_000
/** Workspaces in a row whose faults mean that a store is down. */
const FAULTS_IN_A_ROW = 10

/**
 * Deletes the maps that no current manifest and no upload of their workspace has named for UNUSED_FOR_MS, with their rows. A run
 * that finds a map unused only notes it, and a later run deletes it (docs/decisions/026-unused-maps.md). The maps of a workspace
 * stay while one of its manifests cannot be read. It may be interrupted anywhere. Ages are by the clock of Redis. After a fault
 * the run continues with the next workspace, and throws the first fault at its end.
 */
export async function sweepMaps(deps: SweepMapsDeps): Promise<void> {
  let fault: unknown
  let inARow = 0
  for await (const { id } of deps.directory.workspaces()) {
    await deps.assertElected()
    try {
      if (await hasMaps(deps, id)) await sweepWorkspace(deps, id)
      inARow = 0
    } catch (error) {
      await deps.assertElected()
      deps.logger.warn({ workspaceId: id, ...errorFields(error) }, 'the unused maps of a workspace are kept')
      if (error instanceof UnreadableManifest) continue
      fault ??= error
      if (++inARow === FAULTS_IN_A_ROW) break
    }
  }
  if (fault !== undefined) throw fault
}

async function hasMaps({ store }: SweepMapsDeps, workspaceId: string): Promise<boolean> {
  for await (const page of store.list(sourceMapPrefix(workspaceId))) return page.length > 0
  return false
}

async function sweepWorkspace(deps: SweepMapsDeps, workspaceId: string): Promise<void> {
  const unused = new UnusedMaps(deps.directoryRedis, workspaceId)
  const prefix = sourceMapPrefix(workspaceId)
  let used: UsedMaps | undefined
  do {
    used = await findUsedMaps(deps, workspaceId, used?.to ?? 0)
    for await (const page of deps.store.list(prefix, `${prefix}${used.start}`)) {
      await deps.assertElected()
      const objects = page.flatMap(object => mapOf(object, prefix))
      const covered = objects.filter(({ sha256 }) => used?.covers(sha256))
      await sweepPage(deps, { workspaceId, unused, used }, covered)
      if (covered.length < objects.length) break
    }
  } while (!used.isLast)
  await unused.forget((await redisTimeMs(deps.directoryRedis)) - FORGOTTEN_MS)
}

interface MapObject {
  readonly sha256: string
  readonly lastModifiedMs: number
}

function mapOf({ key, lastModifiedMs }: ListedObject, prefix: string): MapObject[] {
  const sha256 = /^([0-9a-f]{64})\.map$/.exec(key.slice(prefix.length))?.[1]
  return sha256 === undefined ? [] : [{ sha256, lastModifiedMs }]
}

interface Sweep {
  readonly workspaceId: string
  readonly unused: UnusedMaps
  readonly used: UsedMaps
}

async function sweepPage(deps: SweepMapsDeps, sweep: Sweep, objects: readonly MapObject[]): Promise<void> {
  const { unused, used } = sweep
  const now = await redisTimeMs(deps.directoryRedis)
  const since = await unused.since(objects.map(({ sha256 }) => sha256))
  const usedAgain: string[] = []
  const found: string[] = []
  const due: string[] = []
  for (const [i, { sha256, lastModifiedMs }] of objects.entries()) {
    const unusedSince = since[i]
    const isWritten = lastModifiedMs > Math.min(now - YOUNG_MS, unusedSince ?? now)
    if (isWritten || used.has(sha256)) {
      if (unusedSince !== undefined) usedAgain.push(sha256)
    } else if (unusedSince === undefined) found.push(sha256)
    else if (unusedSince <= now - UNUSED_FOR_MS) due.push(sha256)
  }
  await unused.remove(usedAgain)
  await unused.add(found)
  await deleteMaps(deps, sweep, due)
}

/** Deletes maps of one page. The rows go first, while their objects cannot be used: a map without rows is found again. */
async function deleteMaps(
  { clickhouse, objects, logger }: SweepMapsDeps,
  { workspaceId, unused }: Sweep,
  due: readonly string[],
): Promise<void> {
  const sha256s = await unused.beginDeletion(due, UNUSED_FOR_MS)
  if (sha256s.length === 0) return
  let isSent = false
  const rows = {
    table: 'source_maps',
    where: 'workspace_id = {workspaceId: String} AND sha256 IN {sha256s: Array(String)}',
    params: { workspaceId, sha256s },
    isSource: false,
    reason: 'expired',
    id: '',
    onCounted: async () => {
      isSent = true
    },
  } as const
  await deleteCountedRows(clickhouse, rows, AbortSignal.timeout(STATEMENT_TIMEOUT_MS)).catch(async error => {
    // A statement that was sent may still arrive, and must not delete the rows of a map that is uploaded again.
    if (!isSent) await unused.endDeletion(sha256s).catch(() => {})
    throw error
  })
  if (!(await unused.isDeleting(sha256s))) throw new TransientError('deleting maps has taken too long')
  await objects.delete(
    'source-maps',
    sha256s.map(sha256 => sourceMapKey(workspaceId, sha256)),
  )
  await unused.endDeletion(sha256s)
  logger.info({ workspaceId, maps: sha256s.length }, 'unused maps are deleted')
}
