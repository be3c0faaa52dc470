import type { Retention } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import { queryDirectory } from './query-directory.ts'

/** Time until a changed retention applies to reads (docs/api/retention.md#retention). */
const LIFETIME_MS = 10_000
const WORKSPACES_MAX = 10_000

/** Returns a function that reads the retention of a workspace from the directory, at most every LIFETIME_MS. */
export function cachedRetention(
  directory: Pick<Directory, 'workspaceById'>,
  now: () => number,
): (workspaceId: string) => Promise<Retention | undefined> {
  const cache = new Map<string, { readonly retention: Retention | undefined; readonly readAt: number }>()
  return async workspaceId => {
    const cached = cache.get(workspaceId)
    const readAt = now()
    if (cached && readAt - cached.readAt < LIFETIME_MS) return cached.retention
    const workspace = await queryDirectory(directory.workspaceById(workspaceId))
    setBounded(cache, WORKSPACES_MAX, workspaceId, { retention: workspace?.retention, readAt })
    return workspace?.retention
  }
}
