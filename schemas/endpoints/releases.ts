import { z } from 'zod'
import { releaseSlugSchema } from '../release-slug.ts'
import { nextCursorSchema, wholeNumber } from './page.ts'
import { releaseBuildResultSchema } from './report-build.ts'

/** Files of a manifest on one page; there may be a hundred thousand. */
export const MANIFEST_PAGE_MAX = 10_000
/** Build reports that are shown of a release. */
export const BUILD_REPORTS_MAX = 10

const instant = z.iso.datetime()
const count = z.number().int().min(0)

/** What every release says of itself. Without a completed manifest its counters are 0, and `completedAt` is null. */
const release = {
  slug: releaseSlugSchema,
  /** As it was registered: what its telemetry carries as `service.version`. */
  version: z.string(),
  surfaceId: z.string(),
  commit: z.string().nullable(),
  createdAt: instant,
  sourceMapCount: count,
  sourceFileCount: count,
  completedAt: instant.nullable(),
}

export const listedReleaseSchema = z.strictObject(release)
export type ListedRelease = z.infer<typeof listedReleaseSchema>

/** GET /v3/releases: the last registered first. */
export const releasesPageSchema = z.strictObject({
  releases: z.array(listedReleaseSchema),
  nextCursor: nextCursorSchema,
})
export type ReleasesPage = z.infer<typeof releasesPageSchema>

/** A report as its build sent it (spec 2.8): what was not sent is left out. */
export const storedBuildReportSchema = z.strictObject({
  receivedAt: z.iso.datetime({ precision: 3 }),
  result: releaseBuildResultSchema.optional(),
  discover: count.optional(),
  createRelease: count.optional(),
  upload: count.optional(),
  cleanup: count.optional(),
  total: count.optional(),
  fileCount: count.optional(),
  totalBytes: count.optional(),
  preflight: count.optional(),
})
export type StoredBuildReport = z.infer<typeof storedBuildReportSchema>

/** A source map of the manifest (spec 2.7), the size of its bytes, and whether they were compared with `hash`. */
export const listedFileSchema = z.strictObject({
  path: z.string(),
  hash: z.string(),
  debugId: z.string(),
  chunkUrl: z.string(),
  size: count,
  verified: z.boolean(),
})
export type ListedFile = z.infer<typeof listedFileSchema>

/** A page of the manifest, in the order in which its completion named the files. */
export const manifestPageSchema = z.strictObject({
  completedAt: instant,
  files: z.array(listedFileSchema),
  nextCursor: nextCursorSchema,
})
export type ManifestPage = z.infer<typeof manifestPageSchema>

/** Stack frames of this release that were to be symbolicated; `share` is null while there was none. */
export const symbolicationShareSchema = z.strictObject({
  resolvedFrames: count,
  totalFrames: count,
  share: z.number().min(0).max(1).nullable(),
})
export type SymbolicationShare = z.infer<typeof symbolicationShareSchema>

/** GET /v3/releases/{slug}. Counters and manifest are of the same completion. */
export const releaseAnswerSchema = z.strictObject({
  release: z.strictObject({
    ...release,
    /** What the build said of itself. */
    metadata: z.record(z.string(), z.json()).nullable(),
    symbolication: symbolicationShareSchema,
    /** The newest first, at most BUILD_REPORTS_MAX. */
    buildReports: z.array(storedBuildReportSchema),
    /** Null until a first completion. */
    manifest: manifestPageSchema.nullable(),
  }),
})
export type ReleaseAnswer = z.infer<typeof releaseAnswerSchema>

/** The query of GET /v3/releases/{slug}: which files of its manifest. */
export const manifestQuerySchema = z.object({
  limit: wholeNumber(1, MANIFEST_PAGE_MAX).default(MANIFEST_PAGE_MAX),
  /** The `manifest.nextCursor` of the page before. */
  cursor: z.string().max(512).optional(),
})
export type ManifestQuery = z.infer<typeof manifestQuerySchema>
