import type { Redis } from 'ioredis'
import { type Surface, type SurfaceKey, surfaceKeySchema, surfaceSchema } from '../../schemas/records/directory.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { type ListPage, listNewest, walkNames } from './sorted-index.ts'
import { type Command, commitIf, decideAndCommit, type Guard } from './transaction.ts'
import { writeSurface, writeSurfaceKey } from './writes.ts'

/**
 * Greatest number of keys of a surface, revoked and expired ones included. All keys are read together and revoked in one
 * step, which takes 50 ms and 180 ms for 5,000 keys. The arguments of a step that revokes 10,000 exceed the stack.
 */
export const SURFACE_KEYS_MAX = 5_000
/** Greatest number of surfaces of a workspace, deleted ones included. Concurrent requests may exceed it by their number. */
export const SURFACES_MAX = 10_000

/** Stores the surfaces of a workspace and their keys. `now` is in Unix milliseconds. */
export interface SurfaceRecords {
  putSurface(surface: Surface): Promise<void>
  /** Stores a new surface. Refuses beyond SURFACES_MAX. */
  createSurface(surface: Surface): Promise<'created' | 'too_many_surfaces'>
  surface(workspaceId: string, surfaceId: string): Promise<Surface | undefined>
  /** Returns a page, newest first. A page shorter than its limit is the last one. */
  surfaces(workspaceId: string, page: ListPage): Promise<Surface[]>
  /** Returns the ids of all surfaces, by name. Deleted surfaces are included, because their keys, rows and objects remain. */
  surfaceIds(workspaceId: string): Promise<string[]>
  /** Removes a surface and revokes all its keys in one step. */
  deleteSurface(workspaceId: string, surfaceId: string, now: number): Promise<'deleted' | 'absent'>
  /** Stores a key even if its surface does not exist, and notifies every process that caches the key. */
  putSurfaceKey(key: SurfaceKey): Promise<void>
  /** Stores a new key of an existing surface, so that deleting the surface revokes it. Refuses beyond SURFACE_KEYS_MAX. */
  createSurfaceKey(key: SurfaceKey): Promise<'created' | 'no_surface' | 'too_many_keys'>
  /** Finds a key by its digest alone. The key identifies its workspace. */
  surfaceKeyByDigest(digest: string): Promise<SurfaceKey | undefined>
  surfaceKey(workspaceId: string, surfaceId: string, keyId: string): Promise<SurfaceKey | undefined>
  /** Returns all keys of a surface, newest first. Revoked keys and deleted surfaces are included. */
  surfaceKeys(workspaceId: string, surfaceId: string): Promise<SurfaceKey[]>
  /** Returns 'revoked' also for a key that was already revoked. */
  revokeSurfaceKey(workspaceId: string, surfaceId: string, keyId: string, now: number): Promise<'revoked' | 'absent'>
}

interface StoredKey {
  readonly text: string
  readonly key: SurfaceKey
}

/** Creates the part of the directory that stores surfaces and their keys. */
export function createSurfaceRecords(redis: Redis): SurfaceRecords {
  async function loadSurfaces(workspaceId: string, ids: readonly string[]): Promise<(Surface | undefined)[]> {
    const at = ids.map(id => keys.surface(workspaceId, id))
    const texts = at.length === 0 ? [] : await redis.mget(at)
    return texts.map((text, i) => (text === null ? undefined : parseRecord(at[i] ?? '', text, surfaceSchema)))
  }

  /** Reads the keys of a surface, newest first, with their exact texts. */
  async function loadKeys(workspaceId: string, surfaceId: string): Promise<StoredKey[]> {
    const at = (await redis.smembers(keys.surfaceKeys(workspaceId, surfaceId))).map(keys.credential)
    const texts = at.length === 0 ? [] : await redis.mget(at)
    return texts
      .flatMap((text, i) => (text === null ? [] : [{ text, key: parseRecord(at[i] ?? '', text, surfaceKeySchema) }]))
      .filter(({ key }) => key.workspaceId === workspaceId && key.surfaceId === surfaceId)
      .sort((a, b) => newestFirst(a.key, b.key))
  }

  return {
    async putSurface(surface) {
      await commitIf(redis, { guards: [], commands: writeSurface(surface).commands })
    },
    async createSurface(surface) {
      if ((await redis.zcard(keys.surfaceIds(surface.workspaceId))) >= SURFACES_MAX) return 'too_many_surfaces'
      await commitIf(redis, { guards: [], commands: writeSurface(surface).commands })
      return 'created'
    },
    surface: async (workspaceId, surfaceId) => (await loadSurfaces(workspaceId, [surfaceId]))[0],
    surfaces: (workspaceId, page) =>
      listNewest(redis, keys.surfaces(workspaceId), page, ids => loadSurfaces(workspaceId, ids)),
    async surfaceIds(workspaceId) {
      const ids: string[] = []
      for await (const names of walkNames(redis, keys.surfaceIds(workspaceId))) ids.push(...names)
      return ids
    },
    deleteSurface(workspaceId, surfaceId, now) {
      const surfaceKey = keys.surface(workspaceId, surfaceId)
      const keysOf = keys.surfaceKeys(workspaceId, surfaceId)
      return decideAndCommit(redis, async () => {
        // The count is read first: a key that is added later is either read below or changes the count.
        const count = await redis.scard(keysOf)
        const text = await redis.get(surfaceKey)
        if (text === null) return { result: 'absent' as const }
        const revocations = (await loadKeys(workspaceId, surfaceId)).map(stored => revocationOf(stored, now))
        const guards: Guard[] = [
          ['GET', surfaceKey, text],
          ['SCARD', keysOf, String(count)],
          ...revocations.map(({ guard }) => guard),
        ]
        const commands: Command[] = [
          ['DEL', surfaceKey],
          ['ZREM', keys.surfaces(workspaceId), surfaceId],
          ...revocations.flatMap(({ commands }) => commands),
        ]
        return { transaction: { guards, commands }, result: 'deleted' as const }
      })
    },
    async putSurfaceKey(key) {
      await commitIf(redis, { guards: [], commands: writeSurfaceKey(key).commands })
    },
    createSurfaceKey(key) {
      const surfaceKey = keys.surface(key.workspaceId, key.surfaceId)
      const keysOf = keys.surfaceKeys(key.workspaceId, key.surfaceId)
      return decideAndCommit(redis, async () => {
        const [text, count] = await Promise.all([redis.get(surfaceKey), redis.scard(keysOf)])
        if (text === null) return { result: 'no_surface' as const }
        // Concurrent requests may exceed the limit.
        if (count >= SURFACE_KEYS_MAX) return { result: 'too_many_keys' as const }
        const { commands } = writeSurfaceKey(key)
        return { transaction: { guards: [['GET', surfaceKey, text]], commands }, result: 'created' as const }
      })
    },
    async surfaceKeyByDigest(digest) {
      const text = await redis.get(keys.credential(digest))
      return text === null ? undefined : parseRecord(keys.credential(digest), text, surfaceKeySchema)
    },
    async surfaceKey(workspaceId, surfaceId, keyId) {
      return (await loadKeys(workspaceId, surfaceId)).find(({ key }) => key.id === keyId)?.key
    },
    surfaceKeys: async (workspaceId, surfaceId) => (await loadKeys(workspaceId, surfaceId)).map(({ key }) => key),
    revokeSurfaceKey(workspaceId, surfaceId, keyId, now) {
      return decideAndCommit(redis, async () => {
        const stored = (await loadKeys(workspaceId, surfaceId)).find(({ key }) => key.id === keyId)
        if (stored === undefined) return { result: 'absent' as const }
        if (stored.key.revokedAt !== null) return { result: 'revoked' as const }
        const { guard, commands } = revocationOf(stored, now)
        return { transaction: { guards: [guard], commands }, result: 'revoked' as const }
      })
    },
  }
}

/** Returns the guard and the commands that revoke a key. A key that is already revoked stays unchanged. */
function revocationOf({ text, key }: StoredKey, now: number): { guard: Guard; commands: readonly Command[] } {
  const guard: Guard = ['GET', keys.credential(key.digest), text]
  if (key.revokedAt !== null) return { guard, commands: [] }
  return { guard, commands: writeSurfaceKey({ ...key, revokedAt: new Date(now).toISOString() }).commands }
}

function newestFirst(a: SurfaceKey, b: SurfaceKey): number {
  return Date.parse(b.createdAt) - Date.parse(a.createdAt) || (a.id < b.id ? 1 : -1)
}
