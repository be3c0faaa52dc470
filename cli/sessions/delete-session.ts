import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { countSessionRows } from '../../clickhouse/queries/sessions/count-session-rows.ts'
import { deleteSessionRows } from '../../clickhouse/queries/sessions/delete-session-rows.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import { SESSION_TABLES } from '../../clickhouse/queries/sessions/session-key.ts'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'

export interface DeleteSessionDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'list' | 'deleteMany'>
  /** The surfaces that the workspace is known to have or have had; rows name others. */
  readonly surfaceIds: readonly string[]
}

export interface DeletedSession {
  /** By table. */
  readonly rows: Readonly<Record<string, number>>
  readonly objects: number
  readonly objectBytes: number
}

const COUNT_TIMEOUT_MS = 120_000
const DELETE_TIMEOUT_MS = 590_000

/**
 * Deletes what is stored of a session: its recorded objects, then its rows, so that what breaks off half-way finds its
 * surfaces again in the rows that are left. Calling it again is safe. Aggregates of findings stay: they are of many
 * sessions. Throws what the stores throw.
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
    for await (const page of deps.objects.list(replayPrefix(key, surfaceId))) {
      await deps.objects.deleteMany(page.map(object => object.key))
      objects += page.length
      objectBytes += page.reduce((sum, { size }) => sum + size, 0)
    }
  }
  for (const { table, rows } of found) {
    if (rows > 0) await deleteSessionRows(clickhouse, table, key, AbortSignal.timeout(DELETE_TIMEOUT_MS))
  }
  return { rows: Object.fromEntries(found.map(({ table, rows }) => [table.table, rows])), objects, objectBytes }
}

/** Of every chunk of a session: with the slash at its end, of no session whose id only begins alike. */
export function replayPrefix({ workspaceId, sessionId }: SessionKey, surfaceId: string): string {
  const anyChunk = replayKey({ workspaceId, surfaceId, sessionId, windowId: 'w', segmentId: 's' })
  return `${anyChunk.split('/').slice(0, 4).join('/')}/`
}
