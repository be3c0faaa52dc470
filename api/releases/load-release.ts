import { selectBuildReports } from '../../clickhouse/queries/releases/select-build-reports.ts'
import { selectReleaseFrameShare } from '../../clickhouse/queries/releases/select-release-frame-share.ts'
import { BUILD_REPORTS_MAX, type ReleaseAnswer } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer } from '../../schemas/records/directory.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { releaseNotFound } from '../http/guarded-read.ts'
import { CURSOR_FAULT, invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { presentBuildReport, presentFrameShare, presentRelease } from './present-release.ts'
import { type ManifestFiles, readManifestPage } from './read-manifest-page.ts'
import { encodeManifestPlace, type ManifestPlace } from './release-place.ts'

export interface ReleaseKey {
  readonly workspaceId: string
  readonly slug: string
}

/** Which files of the manifest are asked for. */
export interface ManifestPageKey {
  readonly limit: number
  readonly after: ManifestPlace | undefined
}

/** One release with a page of its manifest. Throws a Transient- or PermanentError when a store cannot be read. */
export async function loadRelease(
  deps: ApiDeps,
  key: ReleaseKey,
  page: ManifestPageKey,
  signal: AbortSignal,
): Promise<Outcome<ReleaseAnswer>> {
  const { workspaceId, slug } = key
  const release = await askDirectory(deps.releases.release(workspaceId, slug))
  if (release === undefined) return releaseNotFound
  const reportsKey = { workspaceId, surfaceId: release.surfaceId, releaseSlug: slug }
  const [holding, share, reports] = await Promise.all([
    readHoldingManifest(deps, key, page, signal),
    selectReleaseFrameShare(deps.clickhouse, { workspaceId, releaseSlug: slug }, signal),
    selectBuildReports(deps.clickhouse, reportsKey, BUILD_REPORTS_MAX, signal),
  ])
  if (!holding.ok) return holding
  const value = {
    ...presentRelease(release, holding.value?.pointer),
    metadata: release.metadata,
    symbolication: presentFrameShare(share),
    buildReports: reports.map(presentBuildReport),
    manifest: holding.value ? presentManifest(holding.value) : null,
  }
  return { ok: true, value: { release: value } }
}

interface HoldingManifest {
  readonly pointer: ManifestPointer
  readonly page: ManifestFiles
}

/**
 * The pointer and what it points to, of the same completion; undefined without one. A manifest that was replaced between
 * the two is deleted, and its successor is read instead.
 */
async function readHoldingManifest(
  deps: ApiDeps,
  { workspaceId, slug }: ReleaseKey,
  page: ManifestPageKey,
  signal: AbortSignal,
): Promise<Outcome<HoldingManifest | undefined>> {
  let goneSequence: number | undefined
  for (;;) {
    const pointer = await askDirectory(deps.releases.manifest(workspaceId, slug))
    if (page.after && page.after.sequence !== pointer?.sequence) {
      return invalid('cursor is of a manifest that does not hold any more: begin again', 'api-analytics')
    }
    if (pointer === undefined) return { ok: true, value: undefined }
    if (pointer.sequence === goneSequence) {
      throw new TransientError(`the manifest ${pointer.objectKey} is not in the store`)
    }
    try {
      const read = () => readManifestPage(deps.objects, pointer, page, signal)
      const files = await deps.manifestPages.run(1, read, signal)
      if (files) return { ok: true, value: { pointer, page: files } }
    } catch (error) {
      // The place is a client's word for it.
      if (page.after && error instanceof PermanentError) return invalid(CURSOR_FAULT, 'api-analytics')
      throw error
    }
    goneSequence = pointer.sequence
  }
}

function presentManifest({ pointer, page: { files, next } }: HoldingManifest) {
  return { completedAt: pointer.completedAt, files, nextCursor: next ? encodeManifestPlace(next) : null }
}
