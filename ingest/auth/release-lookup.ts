import type { Release } from '../../schemas/records/directory.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'

/** Finds the surface that a release belongs to. */
export interface ReleaseLookup {
  /**
   * Returns the surface of a release of this workspace, or undefined if the release is unknown. Returns it at once when
   * the release is cached, else a promise. The promise rejects when the directory is unavailable.
   */
  surfaceOf(workspaceId: string, slug: string): string | undefined | Promise<string | undefined>
  /** Caches a release that was just registered here. */
  remember(release: Release): void
}

const MAX_RELEASES = 50_000
/** A release may be deleted, and this long its uploads are still accepted. Its completion is refused in any case. */
const MAX_AGE_MS = 60_000

/**
 * Creates a cache of the directory's releases. A registered release never changes, so it is cached for a minute. An unknown
 * release is looked up for each request, because another edge may register it between two requests of a build. Concurrent
 * requests share one lookup.
 */
export function createReleaseLookup(
  releases: Pick<ReleaseStore, 'release'>,
  now: () => number = Date.now,
): ReleaseLookup {
  const surfaces = new Map<string, { readonly surfaceId: string; readonly validUntil: number }>()
  const lookups = new Map<string, Promise<string | undefined>>()

  function keep(name: string, surfaceId: string): void {
    setBounded(surfaces, MAX_RELEASES, name, { surfaceId, validUntil: now() + MAX_AGE_MS })
  }

  async function lookUp(name: string, workspaceId: string, slug: string): Promise<string | undefined> {
    const surfaceId = (await releases.release(workspaceId, slug))?.surfaceId
    if (surfaceId !== undefined) keep(name, surfaceId)
    return surfaceId
  }

  return {
    surfaceOf(workspaceId, slug) {
      const name = nameOf(workspaceId, slug)
      const known = surfaces.get(name)
      if (known !== undefined && known.validUntil > now()) return known.surfaceId
      let lookup = lookups.get(name)
      if (lookup === undefined) {
        lookup = lookUp(name, workspaceId, slug).finally(() => lookups.delete(name))
        lookups.set(name, lookup)
      }
      return lookup
    },
    remember: ({ workspaceId, slug, surfaceId }) => keep(nameOf(workspaceId, slug), surfaceId),
  }
}

/** Names a release in the cache. Ids of workspaces contain no slash, so names are unambiguous. */
function nameOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}`
}
