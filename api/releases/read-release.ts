import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { readRelease } from '../../schemas/http/releases/operations.ts'
import { manifestQuerySchema, type ReleaseAnswer, releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { decodeCursor } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { loadRelease, manifestCursorSchema } from './load-release.ts'
import { RELEASES } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly releases: Pick<ReleaseStore, 'release' | 'manifest'>
  /** Slots for pages of manifests, which may have megabytes each. */
  readonly manifestPages: Pick<FairSlots, 'run'>
}

/**
 * Returns the route that reads one release: its counters, the share of its stack frames that could be resolved, its build
 * reports, and a page of its manifest (docs/api/releases.md#releases).
 */
export function readReleaseRoute(deps: Deps): Route {
  return guardedRoute(deps, readRelease, {
    resource: RELEASES,
    query: manifestQuerySchema,
    async run({ workspaceId, param, query: { limit, cursor }, deadline }): Promise<Outcome<ReleaseAnswer>> {
      const after = decodeCursor(manifestCursorSchema, cursor)
      if (!after.ok) return after
      const slug = param('releaseSlug')
      if (!releaseSlugSchema.safeParse(slug).success) return notFound(RELEASES)
      return loadRelease(deps, { workspaceId, slug }, { limit, after: after.value }, deadline)
    },
  })
}
