import type { BuildReportRow } from '../../clickhouse/queries/releases/select-build-reports.ts'
import type { ReleaseFrameShare } from '../../clickhouse/queries/releases/select-release-frame-share.ts'
import type { ListedRelease, StoredBuildReport, SymbolicationShare } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer, Release } from '../../schemas/records/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

/** Returns a release as lists show it, with the counters of its manifest. */
export function presentRelease(release: Release, manifest: ManifestPointer | undefined): ListedRelease {
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
export function presentFrameShare({ resolvedFrames, totalFrames }: ReleaseFrameShare): SymbolicationShare {
  return { resolvedFrames, totalFrames, share: totalFrames === 0 ? null : resolvedFrames / totalFrames }
}

/** Returns a build report with the amounts that its sender has given. */
export function presentBuildReport({ receivedAtMs, result, ...amounts }: BuildReportRow): StoredBuildReport {
  const sent = Object.entries(amounts).flatMap(([name, amount]) => (amount === null ? [] : [[name, Number(amount)]]))
  return {
    receivedAt: rfc3339FromUnixMs(Number(receivedAtMs)),
    ...(result && { result }),
    ...Object.fromEntries(sent),
  }
}
