import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type BuildReportRow,
  type ReleaseFrameShare,
  selectBuildReports,
  selectReleaseFrameShare,
} from '../../clickhouse/queries/releases/select-release.ts'
import {
  deleteRelease as deleteReleaseOperation,
  listReleases,
  readRelease,
} from '../../schemas/http/releases/operations.ts'
import {
  BUILD_REPORTS_MAX,
  type ListedRelease,
  listReleasesQuerySchema,
  manifestQuerySchema,
  type ReleaseAnswer,
  type ReleasesPage,
  releaseSlugSchema,
  type StoredBuildReport,
  type SymbolicationShare,
} from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer, Release } from '../../schemas/records/directory.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import { type DeleteReleaseDeps, deleteRelease } from '../../shared/directory/delete-release.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { decodeCursor, encodeCursor, INVALID_CURSOR } from '../http/cursor.ts'
import { authorOf, queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { notFound, type Resource } from '../http/resource.ts'
import { type ManifestFiles, type ManifestPage, readManifestPage } from './read-manifest-page.ts'

interface Deps extends GuardedRouteDeps, DeleteReleaseDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'addChange' | 'surfaceIds'>
  /** Slots for pages of manifests, which may have megabytes each. */
  readonly manifestPages: Pick<FairSlots, 'run'>
  readonly now: () => number
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly releases: Pick<ReleaseStore, 'releases' | 'release' | 'manifest' | 'remove'>
}

/** Returns the routes of releases (docs/api/releases.md#releases). */
export function releaseRoutes(deps: Deps): Route[] {
  return [listReleasesRoute(deps), readReleaseRoute(deps), deleteReleaseRoute(deps)]
}

const cursorSchema = z
  .tuple([z.number().int().min(0), releaseSlugSchema])
  .transform(([createdAtMs, slug]) => ({ createdAtMs, slug }))

/** Returns the route that lists the releases of a workspace, newest first by registration (docs/api/releases.md#releases). */
function listReleasesRoute(deps: Deps): Route {
  return guardedRoute(deps, listReleases, {
    resource: RELEASES,
    query: listReleasesQuerySchema,
    async run({ workspaceId, query: { limit, cursor, surface, version } }): Promise<Outcome<ReleasesPage>> {
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      if (version !== undefined) {
        const all = surface === undefined ? await queryDirectory(deps.directory.surfaceIds(workspaceId)) : [surface]
        const slugs = all.map(surfaceId => releaseSlugOf({ workspaceId, surfaceId, name: version }))
        return namedReleases(deps, workspaceId, slugs)
      }
      const page = { limit, after: after.value }
      const { releases, end } = await queryDirectory(deps.releases.releases(workspaceId, page))
      const listed = releases.map(({ release, manifest }) => presentRelease(release, manifest))
      const nextCursor = end ? encodeCursor([end.createdAtMs, end.slug]) : null
      return { ok: true, value: { releases: listed, nextCursor } }
    },
  })
}

/** Returns a list of those of these releases that exist. Surface and version determine the slug of each. */
async function namedReleases(
  { releases }: Pick<Deps, 'releases'>,
  workspaceId: string,
  slugs: readonly string[],
): Promise<Outcome<ReleasesPage>> {
  const read = async (slug: string) => {
    const release = await releases.release(workspaceId, slug)
    return release ? [presentRelease(release, await releases.manifest(workspaceId, slug))] : []
  }
  const found = await queryDirectory(Promise.all(slugs.map(read)))
  return { ok: true, value: { releases: found.flat(), nextCursor: null } }
}

/**
 * Returns the route that reads one release: its counters, the share of its stack frames that could be resolved, its build
 * reports, and a page of its manifest (docs/api/releases.md#releases).
 */
function readReleaseRoute(deps: Deps): Route {
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

/**
 * Returns the route that deletes a release and its uploads. Its maps stay in the object store as long as anything
 * uses them (docs/api/releases.md#unused-maps).
 */
function deleteReleaseRoute(deps: Deps): Route {
  return guardedRoute(deps, deleteReleaseOperation, {
    resource: RELEASES,
    async run({ caller, workspaceId, param }) {
      const slug = param('releaseSlug')
      if (!releaseSlugSchema.safeParse(slug).success) return notFound(RELEASES)
      const author = authorOf(caller, deps.now())
      const onRemoval = () =>
        deps.directory.addChange(workspaceId, author, { action: 'release.deleted', subject: slug })
      const outcome = await queryDirectory(deleteRelease(deps, workspaceId, slug, onRemoval))
      return outcome === 'removed' ? { ok: true, value: { ok: true } } : notFound(RELEASES)
    },
  })
}

/** Returns a release as lists show it, with the counters of its manifest. */
function presentRelease(release: Release, manifest: ManifestPointer | undefined): ListedRelease {
  return {
    slug: release.slug,
    version: release.name,
    surfaceId: release.surfaceId,
    commit: release.commit,
    createdAt: release.createdAt,
    sourceMapCount: manifest?.sourceMapCount ?? 0,
    sourceFileCount: manifest?.sourceFileCount ?? 0,
    completedAt: manifest?.completedAt ?? null,
  }
}

/** Returns the share of stack frames that were resolved, or null if there are no stack frames. */
function presentFrameShare({ resolvedFrames, totalFrames }: ReleaseFrameShare): SymbolicationShare {
  return { resolvedFrames, totalFrames, share: totalFrames === 0 ? null : resolvedFrames / totalFrames }
}

/** Returns a build report with the amounts that its sender has given. */
function presentBuildReport({ receivedAtMs, result, ...amounts }: BuildReportRow): StoredBuildReport {
  const sent = Object.entries(amounts).flatMap(([name, amount]) => (amount === null ? [] : [[name, Number(amount)]]))
  return {
    receivedAt: rfc3339FromUnixMs(Number(receivedAtMs)),
    ...(result && { result }),
    ...Object.fromEntries(sent),
  }
}

type ReleaseSlugKey = Pick<ReleaseKey, 'workspaceId' | 'slug'>

const whole = z.number().int().min(0)

/** Schema of the cursor of a manifest page. */
const manifestCursorSchema = z.tuple([whole, whole]).transform(([sequence, offset]) => ({ sequence, offset }))

/** Loads one release with a page of its manifest. Throws a TransientError or a PermanentError if a store fails. */
async function loadRelease(
  deps: Deps,
  key: ReleaseSlugKey,
  page: ManifestPage,
  abortSignal: AbortSignal,
): Promise<Outcome<ReleaseAnswer>> {
  const { workspaceId, slug } = key
  const release = await queryDirectory(deps.releases.release(workspaceId, slug))
  if (release === undefined) return notFound(RELEASES)
  const reportsKey = { workspaceId, surfaceId: release.surfaceId, releaseSlug: slug }
  const [current, share, reports] = await Promise.all([
    readCurrentManifest(deps, key, page, abortSignal),
    selectReleaseFrameShare(deps.clickhouse, { workspaceId, releaseSlug: slug }, abortSignal),
    selectBuildReports(deps.clickhouse, reportsKey, BUILD_REPORTS_MAX, abortSignal),
  ])
  if (!current.ok) return current
  const value = {
    ...presentRelease(release, current.value?.pointer),
    metadata: release.metadata,
    symbolication: presentFrameShare(share),
    buildReports: reports.map(presentBuildReport),
    manifest: current.value ? presentManifest(current.value) : null,
  }
  return { ok: true, value: { release: value } }
}

interface CurrentManifest {
  readonly pointer: ManifestPointer
  readonly page: ManifestFiles
}

/**
 * Reads the pointer to the current manifest and a page of that manifest. Returns the value undefined if the release has no
 * manifest. If the manifest is replaced, and so deleted, between the two reads, its successor is read.
 */
async function readCurrentManifest(
  deps: Deps,
  { workspaceId, slug }: ReleaseSlugKey,
  page: ManifestPage,
  abortSignal: AbortSignal,
): Promise<Outcome<CurrentManifest | undefined>> {
  let missingSequence: number | undefined
  for (;;) {
    const pointer = await queryDirectory(deps.releases.manifest(workspaceId, slug))
    if (page.after && page.after.sequence !== pointer?.sequence) {
      return invalid('cursor is for a manifest that was replaced: start again without it')
    }
    if (pointer === undefined) return { ok: true, value: undefined }
    if (pointer.sequence === missingSequence) {
      throw new TransientError(`the manifest ${pointer.objectKey} is missing from the store`)
    }
    try {
      const read = () => readManifestPage(deps.objects, pointer, page, abortSignal)
      const files = await deps.manifestPages.run(workspaceId, read, abortSignal)
      if (files) return { ok: true, value: { pointer, page: files } }
    } catch (error) {
      // The offset comes from the client, so it is the likely cause.
      if (page.after && error instanceof PermanentError) return INVALID_CURSOR
      throw error
    }
    missingSequence = pointer.sequence
  }
}

function presentManifest({ pointer, page: { files, next } }: CurrentManifest) {
  const nextCursor = next ? encodeCursor([next.sequence, next.offset]) : null
  return { completedAt: pointer.completedAt, files, nextCursor }
}

/** Releases and their manifests. */
const RELEASES: Resource = {
  notFound: { code: 'RELEASE_NOT_FOUND', message: 'there is no such release' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'releases are unavailable: retry after the delay',
    service: 'frontier-buildtime',
    retryAfterSeconds: 5,
  },
}
