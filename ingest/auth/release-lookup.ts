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

/**
 * Creates a cache of the directory's releases. A registered release never changes, so it is cached. An unknown release is
 * looked up for each request, because another edge may register it between two requests of a build. Concurrent requests
 * share one lookup.
 */
export function createReleaseLookup(releases: Pick<ReleaseStore, 'release'>): ReleaseLookup {
  const surfaces = new Map<string, string>()
  const lookups = new Map<string, Promise<string | undefined>>()

  async function lookUp(name: string, workspaceId: string, slug: string): Promise<string | undefined> {
    const surfaceId = (await releases.release(workspaceId, slug))?.surfaceId
    if (surfaceId !== undefined) setBounded(surfaces, MAX_RELEASES, name, surfaceId)
    return surfaceId
  }

  return {
    surfaceOf(workspaceId, slug) {
      const name = nameOf(workspaceId, slug)
      const surfaceId = surfaces.get(name)
      if (surfaceId !== undefined) return surfaceId
      let lookup = lookups.get(name)
      if (lookup === undefined) {
        lookup = lookUp(name, workspaceId, slug).finally(() => lookups.delete(name))
        lookups.set(name, lookup)
      }
      return lookup
    },
    remember: ({ workspaceId, slug, surfaceId }) =>
      setBounded(surfaces, MAX_RELEASES, nameOf(workspaceId, slug), surfaceId),
  }
}

/** Names a release in the cache. Ids of workspaces contain no slash, so names are unambiguous. */
function nameOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}`
}
