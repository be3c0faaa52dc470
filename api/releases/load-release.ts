import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectBuildReports } from '../../clickhouse/queries/releases/select-build-reports.ts'
import { selectReleaseFrameShare } from '../../clickhouse/queries/releases/select-release-frame-share.ts'
import { BUILD_REPORTS_MAX, type ReleaseAnswer } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer } from '../../schemas/records/directory.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { encodeCursor, INVALID_CURSOR } from '../http/cursor.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { presentBuildReport, presentFrameShare, presentRelease } from './present-release.ts'
import { type ManifestFiles, type ManifestPage, readManifestPage } from './read-manifest-page.ts'
import { RELEASES } from './resource.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly releases: Pick<ReleaseStore, 'release' | 'manifest'>
  readonly manifestPages: Pick<FairSlots, 'run'>
}

type ReleaseSlugKey = Pick<ReleaseKey, 'workspaceId' | 'slug'>

const whole = z.number().int().min(0)

/** Schema of the cursor of a manifest page. */
export const manifestCursorSchema = z.tuple([whole, whole]).transform(([sequence, offset]) => ({ sequence, offset }))

/** Loads one release with a page of its manifest. Throws a TransientError or a PermanentError if a store fails. */
export async function loadRelease(
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
