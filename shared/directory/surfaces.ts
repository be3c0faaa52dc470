import type { Redis } from 'ioredis'
import { type Surface, type SurfaceKey, surfaceKeySchema, surfaceSchema } from '../../schemas/records/directory.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { type ListPage, listNewest, walkNames } from './sorted-index.ts'
import { type Command, commitIf, decideAndCommit, type Guard } from './transaction.ts'
import { writeSurface, writeSurfaceKey } from './writes.ts'

/**
 * Keys that a surface has or had: all of them are read together, and revoked in one step. Of 5,000 that takes 50 ms and
 * 180 ms; the words of a step that revokes 10,000 no longer fit on the stack.
 */
export const SURFACE_KEYS_MAX = 5_000
/** What a workspace may have and have had: the store is one for all of them. Several made at once may pass it by as many. */
export const SURFACES_MAX = 10_000

/** Surfaces of a workspace and their keys. `now` is Unix milliseconds. */
export interface SurfaceRecords {
  putSurface(surface: Surface): Promise<void>
  /** Stores a new surface. Refuses beyond SURFACES_MAX. */
  createSurface(surface: Surface): Promise<'created' | 'too_many_surfaces'>
  surface(workspaceId: string, surfaceId: string): Promise<Surface | undefined>
  /** Newest first. A page shorter than its limit is the last one. */
  surfaces(workspaceId: string, page: ListPage): Promise<Surface[]>
  /** Of all surfaces that the workspace has or had, by name: of a deleted one keys, rows and objects remain. */
  surfaceIds(workspaceId: string): Promise<string[]>
  /** Removes a surface and revokes all its keys in one step. */
  deleteSurface(workspaceId: string, surfaceId: string, now: number): Promise<'deleted' | 'absent'>
  /** Stores a key, whether its surface is there or not, and tells every process that caches it. */
  putSurfaceKey(key: SurfaceKey): Promise<void>
  /** Stores a new key of a surface that is there: none escapes the surface's deletion. Refuses beyond SURFACE_KEYS_MAX. */
  createSurfaceKey(key: SurfaceKey): Promise<'created' | 'no_surface' | 'too_many_keys'>
  /** By the digest alone: a presented key is what tells the workspace. */
  surfaceKeyByDigest(digest: string): Promise<SurfaceKey | undefined>
  surfaceKey(workspaceId: string, surfaceId: string, keyId: string): Promise<SurfaceKey | undefined>
  /** All of them, revoked ones too, newest first; also of a surface that was deleted. */
  surfaceKeys(workspaceId: string, surfaceId: string): Promise<SurfaceKey[]>
  /** 'revoked' also when it was before. */
  revokeSurfaceKey(workspaceId: string, surfaceId: string, keyId: string, now: number): Promise<'revoked' | 'absent'>
}

interface StoredKey {
  readonly text: string
  readonly key: SurfaceKey
}

export function createSurfaceRecords(redis: Redis): SurfaceRecords {
  async function loadSurfaces(workspaceId: string, ids: readonly string[]): Promise<(Surface | undefined)[]> {
    const at = ids.map(id => keys.surface(workspaceId, id))
    const texts = at.length === 0 ? [] : await redis.mget(at)
    return texts.map((text, i) => (text === null ? undefined : parseRecord(at[i] ?? '', text, surfaceSchema)))
  }

  /** Newest first, with their texts as they stand. */
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
        // The count first: a key that is added after it is seen, or changes it.
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
        return { commit: { guards, commands }, result: 'deleted' as const }
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
        // Those that are made at the same moment may go past it.
        if (count >= SURFACE_KEYS_MAX) return { result: 'too_many_keys' as const }
        const { commands } = writeSurfaceKey(key)
        return { commit: { guards: [['GET', surfaceKey, text]], commands }, result: 'created' as const }
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
        return { commit: { guards: [guard], commands }, result: 'revoked' as const }
      })
    },
  }
}

/** A key that was revoked before stays as it is. */
function revocationOf({ text, key }: StoredKey, now: number): { guard: Guard; commands: readonly Command[] } {
  const guard: Guard = ['GET', keys.credential(key.digest), text]
  if (key.revokedAt !== null) return { guard, commands: [] }
  return { guard, commands: writeSurfaceKey({ ...key, revokedAt: new Date(now).toISOString() }).commands }
}

function newestFirst(a: SurfaceKey, b: SurfaceKey): number {
  return Date.parse(b.createdAt) - Date.parse(a.createdAt) || (a.id < b.id ? 1 : -1)
}
