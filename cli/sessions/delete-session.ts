import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type CountedDeletion, deleteCountedRows } from '../../clickhouse/queries/retention/delete-counted-rows.ts'
import { countSessionRows } from '../../clickhouse/queries/sessions/count-session-rows.ts'
import {
  OF_SESSION,
  SESSION_TABLES,
  type SessionKey,
  type SessionTable,
} from '../../clickhouse/queries/sessions/session-key.ts'
import { replayPrefix } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'

/** Dependencies of the deletion of a session. */
interface DeleteSessionDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'list' | 'deleteMany'>
  /** All present and former surfaces in the directory. Rows of the session may name more. */
  readonly surfaceIds: readonly string[]
}

/** Counts of the rows and objects that were deleted. */
export interface DeletedSession {
  /** Number of rows by table. */
  readonly rows: Readonly<Record<string, number>>
  readonly objects: number
  readonly objectBytes: number
}

const COUNT_TIMEOUT_MS = 120_000
const DELETE_TIMEOUT_MS = 590_000

/**
 * Deletes the stored data of a session. Its replay objects are deleted before its rows, so that after an interruption
 * the next call still finds the surfaces in the rows. Calling it again is safe. Aggregates of findings stay, because
 * they belong to many sessions. Throws the errors of the stores.
 */
export async function deleteSession(deps: DeleteSessionDeps, key: SessionKey): Promise<DeletedSession> {
  const { clickhouse } = deps
  const found = await Promise.all(
    SESSION_TABLES.map(async table => {
      const { rows, surfaceIds } = await countSessionRows(clickhouse, table, key, AbortSignal.timeout(COUNT_TIMEOUT_MS))
      return { table, rows, surfaceIds }
    }),
  )
  const surfaceIds = new Set([...deps.surfaceIds, ...found.flatMap(({ surfaceIds }) => surfaceIds)])
  let objects = 0
  let objectBytes = 0
  for (const surfaceId of surfaceIds) {
    for await (const page of deps.objects.list(replayPrefix({ ...key, surfaceId }))) {
      await deps.objects.deleteMany(page.map(object => object.key))
      objects += page.length
      objectBytes += page.reduce((sum, { size }) => sum + size, 0)
    }
  }
  for (const { table, rows } of found) {
    if (rows > 0) await deleteCountedRows(clickhouse, deletionOf(table, key), AbortSignal.timeout(DELETE_TIMEOUT_MS))
  }
  return { rows: Object.fromEntries(found.map(({ table, rows }) => [table.table, rows])), objects, objectBytes }
}

function deletionOf({ table, isSource }: SessionTable, key: SessionKey): CountedDeletion {
  const id = `session ${key.workspaceId} ${key.sessionId}`
  return { table, where: OF_SESSION, params: { ...key }, isSource, reason: 'erased', id }
}
