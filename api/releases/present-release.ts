import type { BuildReportRow } from '../../clickhouse/queries/releases/select-build-reports.ts'
import type { ReleaseFrameShare } from '../../clickhouse/queries/releases/select-release-frame-share.ts'
import type { ListedRelease, StoredBuildReport, SymbolicationShare } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer, Release } from '../../schemas/records/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

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

export function presentFrameShare({ resolvedFrames, totalFrames }: ReleaseFrameShare): SymbolicationShare {
  return { resolvedFrames, totalFrames, share: totalFrames === 0 ? null : resolvedFrames / totalFrames }
}

export function presentBuildReport({ receivedAtMs, result, ...amounts }: BuildReportRow): StoredBuildReport {
  const sent = Object.entries(amounts).flatMap(([name, amount]) => (amount === null ? [] : [[name, Number(amount)]]))
  return {
    receivedAt: rfc3339FromUnixMs(Number(receivedAtMs)),
    ...(result && { result }),
    ...Object.fromEntries(sent),
  }
}
