import { z } from 'zod'

import { jsonObjectSchema } from '../fields.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'

/** `rel_…` (spec 2.6). Those that we give have 26 base32 characters behind it; any other is an unknown one. */
export const releaseSlugSchema = z
  .string()
  .regex(/^rel_.*$/, 'must begin with rel_')
  .max(128)

/** POST /v3/releases (CONTRACT section 5). Unknown fields are refused: a misspelled `commit` would be lost in silence. */
export const registerReleaseSchema = z
  .strictObject({
    version: z
      .string()
      .min(1)
      .max(200)
      .meta({ description: 'What the telemetry of this release carries as `service.version`.' }),
    commit: z.string().max(200).optional(),
    metadata: jsonObjectSchema
      .optional()
      .meta({ description: 'Whatever the build has to say of itself, nested at most 100 deep.' }),
  })
  .meta({ id: 'RegisterReleaseRequest' })
export type RegisterRelease = z.infer<typeof registerReleaseSchema>

export const registeredReleaseSchema = z
  .strictObject({ releaseSlug: releaseSlugSchema })
  .meta({ id: 'RegisteredRelease' })

/** How a build's upload ended (spec 2.8). */
export const RELEASE_BUILD_RESULTS = [
  'ok',
  'api_key_wrong_prefix',
  'api_key_unreadable',
  'api_key_rejected',
  'api_key_scope_mismatch',
  'pipeline_failed',
  'no_source_maps',
  'client_maps_unmapped',
] as const
export const releaseBuildResultSchema = z
  .enum(RELEASE_BUILD_RESULTS)
  .meta({ id: 'ReleaseBuildResult', description: 'How an upload of source maps ended.' })
export type ReleaseBuildResult = z.infer<typeof releaseBuildResultSchema>

const amount = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

/** POST /v3/releases/{releaseSlug}/telemetry (spec 4.8, CONTRACT 4.8): times are in ms as our own build command sends them. */
export const buildReportSchema = z
  .object({
    discover: amount.meta({ description: 'ms to find the maps.' }),
    createRelease: amount.meta({ description: 'ms to register the release.' }),
    upload: amount.meta({ description: 'ms to send the maps.' }),
    cleanup: amount.meta({ description: 'ms to tidy up behind it.' }),
    total: amount.meta({ description: 'ms altogether.' }),
    fileCount: amount,
    totalBytes: amount,
    preflight: amount.meta({ description: 'ms to check what there is before anything is sent.' }),
    result: releaseBuildResultSchema,
  })
  .partial()
  .refine(report => Object.keys(report).length > 0, 'must have at least one field')
  .meta({ id: 'BuildReport', minProperties: 1, description: 'At least one field; a build says what it knows.' })
/** TelemetryResponse (spec 2.8). */
export const telemetryResponseSchema = z.strictObject({ ok: z.literal(true) }).meta({ id: 'TelemetryResponse' })

export type BuildReport = z.infer<typeof buildReportSchema>

/** Files of a manifest on one page; there may be a hundred thousand. */
export const MANIFEST_PAGE_MAX = 10_000
/** Build reports that are shown of a release. */
export const BUILD_REPORTS_MAX = 10

const instant = z.iso.datetime()
const count = z.number().int().min(0)

/** What every release says of itself. Without a completed manifest its counters are 0, and `completedAt` is null. */
const release = {
  slug: releaseSlugSchema,
  version: z.string().meta({ description: 'As it was registered: what its telemetry carries as `service.version`.' }),
  surfaceId: z.string(),
  commit: z.string().nullable(),
  createdAt: instant,
  sourceMapCount: count.meta({ description: 'Maps of its manifest.' }),
  sourceFileCount: count.meta({ description: 'As the completion said.' }),
  completedAt: instant.nullable().meta({ description: 'Null until a first completion.' }),
}

export const listedReleaseSchema = z.strictObject(release).meta({ id: 'Release' })
export type ListedRelease = z.infer<typeof listedReleaseSchema>

/** GET /v3/releases: the last registered first. */
export const releasesPageSchema = z
  .strictObject({ releases: z.array(listedReleaseSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ReleasesPage' })
export type ReleasesPage = z.infer<typeof releasesPageSchema>

/** A report as its build sent it (spec 2.8): what was not sent is left out. */
export const storedBuildReportSchema = z
  .strictObject({
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
  .meta({ id: 'StoredBuildReport', description: 'A report as its build sent it: what was not sent is left out.' })
export type StoredBuildReport = z.infer<typeof storedBuildReportSchema>

/** A source map of the manifest (spec 2.7), the size of its bytes, and whether they were compared with `hash`. */
export const listedFileSchema = z
  .strictObject({
    path: z.string(),
    hash: z.string(),
    debugId: z.string(),
    chunkUrl: z.string(),
    size: count.meta({ description: 'Bytes of the stored map.' }),
    verified: z.boolean().meta({ description: 'False when `hash` is of a form that nothing can be compared with.' }),
  })
  .meta({ id: 'ManifestFile' })
export type ListedFile = z.infer<typeof listedFileSchema>

/** A page of the manifest, in the order in which its completion named the files. */
export const manifestPageSchema = z.strictObject({
  completedAt: instant,
  files: z.array(listedFileSchema),
  nextCursor: nextCursorSchema,
})
export type ManifestPage = z.infer<typeof manifestPageSchema>

/** Stack frames of this release that were to be symbolicated; `share` is null while there was none. */
export const symbolicationShareSchema = z
  .strictObject({
    resolvedFrames: count,
    totalFrames: count,
    share: z.number().min(0).max(1).nullable().meta({ description: 'Null while there was no frame.' }),
  })
  .meta({ id: 'SymbolicationShare', description: 'Stack frames of this release, and those that its maps resolved.' })
export type SymbolicationShare = z.infer<typeof symbolicationShareSchema>

/** GET /v3/releases/{slug}. Counters and manifest are of the same completion. */
export const releaseAnswerSchema = z.strictObject({
  release: z
    .strictObject({
      ...release,
      metadata: jsonObjectSchema.nullable().meta({ description: 'What the build said of itself.' }),
      symbolication: symbolicationShareSchema,
      buildReports: z
        .array(storedBuildReportSchema)
        .meta({ description: `The newest first, at most ${BUILD_REPORTS_MAX}.` }),
      manifest: manifestPageSchema.nullable().meta({ description: 'Null until a first completion.' }),
    })
    .meta({ id: 'ReleaseDetails' }),
})
export type ReleaseAnswer = z.infer<typeof releaseAnswerSchema>

/** The query of GET /v3/releases/{slug}: which files of its manifest. */
export const manifestQuerySchema = z.object({
  limit: pageLimit(MANIFEST_PAGE_MAX, MANIFEST_PAGE_MAX).meta({
    description: 'How many files of the manifest at most.',
  }),
  cursor: cursorSchema.meta({ description: 'The `manifest.nextCursor` of the page before.' }),
})
export type ManifestQuery = z.infer<typeof manifestQuerySchema>
