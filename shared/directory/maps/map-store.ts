import type { Redis } from 'ioredis'
import { pagesOf } from '../../concurrency/pages.ts'
import { TransientError } from '../../runtime/errors.ts'
import { directoryScript } from '../directory-script.ts'
import { mapKeys, upkeepKeys } from '../record.ts'

/** Stores which maps of a workspace are stored. */
export interface MapStore {
  /**
   * Returns which of these maps (SHA-256 in hex) are known to be stored in this workspace. A map that is stored may be unknown,
   * and is then uploaded once more.
   */
  storedMaps(workspaceId: string, sha256s: readonly string[]): Promise<Set<string>>
  /** Records that these maps are stored. Above STORED_MAPS_MAX, as many others are forgotten, chosen at random. */
  addStoredMaps(workspaceId: string, sha256s: readonly string[]): Promise<void>
  /** Records that the objects of these maps do not exist any more. */
  removeStoredMaps(workspaceId: string, sha256s: readonly string[]): Promise<void>
  /**
   * Takes a map off the unused ones. To be called before its object is looked up or written for a manifest: from then on it
   * is not deleted for days (docs/decisions/026-unused-maps.md). Throws a TransientError while the object is being deleted.
   */
  useMap(workspaceId: string, sha256: string): Promise<void>
}

/** Greatest number of stored maps that are known of a workspace: about 9 MB, and as many as a release may have. */
export const STORED_MAPS_MAX = 100_000

const ADD_STORED_MAPS = directoryScript('add-stored-maps')
const USE_MAP = directoryScript('use-map')

/** Members that one command adds to or removes from the set of stored maps. */
const STORED_MAPS_PAGE = 1_000

/** Digests are stored as their 32 bytes, half of the size of their hex text. */
export const digestBytes = (sha256: string) => Buffer.from(sha256, 'hex')

/** Creates the part of the store of releases that knows their maps. */
export function createMapStore(redis: Redis): MapStore {
  return {
    async storedMaps(workspaceId, sha256s) {
      if (sha256s.length === 0) return new Set()
      const flags = await redis.smismember(mapKeys.stored(workspaceId), ...sha256s.map(digestBytes))
      return new Set(sha256s.filter((_, i) => flags[i] === 1))
    },
    async addStoredMaps(workspaceId, sha256s) {
      const keys = [mapKeys.stored(workspaceId), mapKeys.unused(workspaceId)]
      for (const page of pagesOf(sha256s, STORED_MAPS_PAGE))
        await ADD_STORED_MAPS.run(redis, keys, [STORED_MAPS_MAX, ...page.map(digestBytes)])
    },
    async removeStoredMaps(workspaceId, sha256s) {
      for (const page of pagesOf(sha256s, STORED_MAPS_PAGE))
        await redis.srem(mapKeys.stored(workspaceId), ...page.map(digestBytes))
    },
    async useMap(workspaceId, sha256) {
      const keys = [mapKeys.unused(workspaceId), upkeepKeys.deletedMap(workspaceId, sha256)]
      if ((await USE_MAP.run(redis, keys, [digestBytes(sha256)])) === 1) return
      throw new TransientError('the object of a map that was unused is being deleted')
    },
  }
}
