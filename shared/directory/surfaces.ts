import type { Redis } from 'ioredis'
import { type Surface, surfaceSchema } from '../../schemas/records/directory.ts'
import { type Author, writeChange } from './changes/change-log.ts'
import { decideOnce } from './creations.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { type ListPage, listNewest, walkNames } from './sorted-index.ts'
import { loadSurfaceKeys, publishChanges, removalOf, revocationOf } from './surface-keys.ts'
import { type Command, commitIf, type Decision, decideAndCommit, type Guard } from './transaction.ts'
import { writeSurface } from './writes.ts'

/** Greatest number of surfaces of a workspace. Concurrent requests may exceed it by their number. */
export const SURFACES_MAX = 10_000
/** Number of deleted surfaces whose ids are kept, so that their rows and objects can be found. */
export const DELETED_SURFACES_KEPT = 10_000
/** Number of keys of a deleted surface that are kept, the newest. The others are removed. */
export const DELETED_SURFACE_KEYS_KEPT = 100
/** Number of deleted surfaces that one creation forgets when there are too many. */
const FORGOTTEN_AT_ONCE = 10

/** Stores the surfaces of a workspace. `now` is in Unix milliseconds. */
export interface SurfaceRecords {
  putSurface(surface: Surface): Promise<void>
  /** Stores a new surface. Refuses beyond SURFACES_MAX. Deleted surfaces do not count. */
  createSurface(surface: Surface, author?: Author): Promise<'created' | 'too_many_surfaces'>
  surface(workspaceId: string, surfaceId: string): Promise<Surface | undefined>
  /** Returns a page, newest first. A page shorter than its limit is the last one. */
  surfaces(workspaceId: string, page: ListPage): Promise<Surface[]>
  /**
   * Returns the ids of all surfaces, by name. The last DELETED_SURFACES_KEPT deleted surfaces are included, because their
   * rows and objects remain.
   */
  surfaceIds(workspaceId: string): Promise<string[]>
  /** Removes a surface and revokes all its keys in one step, and publishes that in one message. */
  deleteSurface(workspaceId: string, surfaceId: string, now: number, author?: Author): Promise<'deleted' | 'absent'>
}

/** Creates the part of the directory that stores surfaces. */
export function createSurfaceRecords(redis: Redis): SurfaceRecords {
  async function loadSurfaces(workspaceId: string, ids: readonly string[]): Promise<(Surface | undefined)[]> {
    const at = ids.map(id => keys.surface(workspaceId, id))
    const texts = at.length === 0 ? [] : await redis.mget(at)
    return texts.map((text, i) => (text === null ? undefined : parseRecord(at[i] ?? '', text, surfaceSchema)))
  }

  return {
    async putSurface(surface) {
      await commitIf(redis, { guards: [], commands: writeSurface(surface).commands })
    },
    createSurface: (surface, author) => decideOnce(redis, author?.once, () => decideSurface(redis, surface, author)),
    surface: async (workspaceId, surfaceId) => (await loadSurfaces(workspaceId, [surfaceId]))[0],
    surfaces: (workspaceId, page) =>
      listNewest(redis, keys.surfaces(workspaceId), page, ids => loadSurfaces(workspaceId, ids)),
    async surfaceIds(workspaceId) {
      const ids: string[] = []
      for await (const names of walkNames(redis, keys.surfaceIds(workspaceId))) ids.push(...names)
      return ids
    },
    deleteSurface(workspaceId, surfaceId, now, author) {
      const surfaceKey = keys.surface(workspaceId, surfaceId)
      const keysOf = keys.surfaceKeys(workspaceId, surfaceId)
      return decideAndCommit(redis, async () => {
        // The count is read first: a key that is added later is either read below or changes the count.
        const count = await redis.scard(keysOf)
        const text = await redis.get(surfaceKey)
        if (text === null) return { result: 'absent' as const }
        const stored = await loadSurfaceKeys(redis, workspaceId, surfaceId)
        const kept = stored.slice(0, DELETED_SURFACE_KEYS_KEPT).map(key => revocationOf(key, now))
        const guards: Guard[] = [
          ['GET', surfaceKey, text],
          ['SCARD', keysOf, String(count)],
          ...kept.map(({ guard }) => guard),
        ]
        const commands: Command[] = [
          ['DEL', surfaceKey],
          ['ZREM', keys.surfaces(workspaceId), surfaceId],
          ['ZADD', keys.deletedSurfaces(workspaceId), now, surfaceId],
          ...kept.flatMap(revocation => revocation.commands),
          ...stored.slice(DELETED_SURFACE_KEYS_KEPT).flatMap(({ key }) => removalOf(key)),
          ...writeChange(workspaceId, author, { action: 'surface.deleted', subject: surfaceId }),
          ...publishChanges(stored.filter(({ key }) => key.revokedAt === null).map(({ key }) => key.digest)),
        ]
        return { transaction: { guards, commands }, result: 'deleted' as const }
      })
    },
  }
}

/** Decides how a new surface would change the current state. */
async function decideSurface(
  redis: Redis,
  surface: Surface,
  author: Author | undefined,
): Promise<Decision<'created' | 'too_many_surfaces'>> {
  const { workspaceId, id, name } = surface
  const [count, known] = await Promise.all([
    redis.zcard(keys.surfaces(workspaceId)),
    redis.zcard(keys.surfaceIds(workspaceId)),
  ])
  if (count >= SURFACES_MAX) return { result: 'too_many_surfaces' }
  const forgotten = known - count >= DELETED_SURFACES_KEPT ? await forgetDeleted(redis, workspaceId) : []
  const logged = writeChange(workspaceId, author, { action: 'surface.created', subject: id, name })
  const commands = [...writeSurface(surface).commands, ...forgotten, ...logged]
  return { result: 'created', transaction: { guards: [], commands } }
}

/** Returns the commands that remove the surfaces that were deleted longest ago, with what is left of their keys. */
async function forgetDeleted(redis: Redis, workspaceId: string): Promise<Command[]> {
  const index = keys.deletedSurfaces(workspaceId)
  if ((await redis.zcard(index)) === 0) await recordDeleted(redis, workspaceId)
  const oldest = await redis.zrange(index, 0, String(FORGOTTEN_AT_ONCE - 1))
  const commands: Command[] = []
  for (const surfaceId of oldest) {
    for (const { key } of await loadSurfaceKeys(redis, workspaceId, surfaceId)) commands.push(...removalOf(key))
    commands.push(
      ['DEL', keys.surfaceKeys(workspaceId, surfaceId)],
      ['ZREM', keys.surfaceIds(workspaceId), surfaceId],
      ['ZREM', index, surfaceId],
    )
  }
  return commands
}

/** Writes the index of deleted surfaces, which imports do not write. */
async function recordDeleted(redis: Redis, workspaceId: string): Promise<void> {
  for await (const names of walkNames(redis, keys.surfaceIds(workspaceId))) {
    const scores = await redis.zmscore(keys.surfaces(workspaceId), names)
    const deleted = names.filter((_, i) => scores[i] === null)
    if (deleted.length > 0) await redis.zadd(keys.deletedSurfaces(workspaceId), ...deleted.flatMap(id => ['0', id]))
  }
}
