import type { Release } from '../../schemas/records/directory.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { setBounded } from './bounded-map.ts'

export interface ReleaseLookup {
  /**
   * The surface that a release of this workspace belongs to; undefined for an unknown release. At once when it was seen
   * before. Rejects when the directory cannot be asked.
   */
  surfaceOf(workspaceId: string, slug: string): string | undefined | Promise<string | undefined>
  /** A release that was just registered here. */
  remember(release: Release): void
}

const MAX_RELEASES = 50_000

/**
 * Releases in front of the directory. A registered one never changes, and is kept; an unknown one is asked for each
 * time (all who ask at once share the answer), since another edge may register it between two requests of a build.
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

/** Ids of workspaces have no slash. */
function nameOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}`
}
