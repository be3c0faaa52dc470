import { z } from 'zod'

import { EXAMPLE } from '../example-values.ts'
import { exactObject, jsonValueSchema } from '../fields.ts'
import { surfaceFilter } from '../filters.ts'
import { formatBytes, RELEASE_METADATA_BYTES } from '../limits.ts'
import { cursorSchema, nextCursorSchema, pageLimit, pageQuerySchema } from '../page.ts'

/** Slug of a release: `rel_` and, if the service generated it, 26 base32 characters. Any other slug is unknown. */
export const releaseSlugSchema = z
  .string()
  .regex(/^rel_.*$/, 'must begin with rel_')
  .max(128)

/**
 * Metadata of a release. Its values are not validated one by one: JSON has no others, and thousands of small values would
 * hold up every other request of the process.
 */
const metadataSchema = z
  .unknown()
  .refine(value => typeof value === 'object' && value !== null && !Array.isArray(value), {
    error: 'must be an object',
    abort: true,
  })
  .refine(
    metadata => Buffer.byteLength(JSON.stringify(metadata)) <= RELEASE_METADATA_BYTES,
    `must have at most ${formatBytes(RELEASE_METADATA_BYTES)} as JSON without blanks`,
  )
  .meta({
    type: 'object',
    additionalProperties: true,
    description: `Free-form data of the build: at most ${formatBytes(RELEASE_METADATA_BYTES)}, nested at most 100 deep.`,
  })

/**
 * Body of POST /v3/releases (docs/api/releases.md#register-release). Unknown fields are refused, because a misspelled
 * `commit` would be ignored silently.
 */
export const registerReleaseSchema = exactObject({
  version: z.string().min(1).max(200).meta({ description: 'The `service.version` of the telemetry of this release.' }),
  commit: z.string().max(200).optional().meta({ description: 'The commit that it was built from.' }),
  metadata: metadataSchema.optional(),
}).meta({ id: 'RegisterReleaseRequest' })
/** Body of POST /v3/releases. */
export type RegisterRelease = z.infer<typeof registerReleaseSchema>

/** Response of POST /v3/releases. */
export const registeredReleaseSchema = z
  .strictObject({ releaseSlug: releaseSlugSchema })
  .meta({ id: 'RegisteredRelease' })

/** Results of the upload of a build (docs/api/releases.md#build-report). */
const RELEASE_BUILD_RESULTS = [
  'ok',
  'api_key_wrong_prefix',
  'api_key_unreadable',
  'api_key_rejected',
  'api_key_scope_mismatch',
  'pipeline_failed',
  'no_source_maps',
  'client_maps_unmapped',
] as const
/** Result of the upload of a build. */
const releaseBuildResultSchema = z
  .enum(RELEASE_BUILD_RESULTS)
  .meta({ id: 'ReleaseBuildResult', description: 'The result of an upload of source maps.' })
/** Result of the upload of a build. */
export type ReleaseBuildResult = z.infer<typeof releaseBuildResultSchema>

const amount = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

/** Body of POST /v3/releases/{releaseSlug}/telemetry (docs/api/releases.md#build-report). Durations are in ms. */
export const buildReportSchema = z
  .object({
    discover: amount.meta({ description: 'ms to find the maps.' }),
    createRelease: amount.meta({ description: 'ms to register the release.' }),
    upload: amount.meta({ description: 'ms to send the maps.' }),
    cleanup: amount.meta({ description: 'ms to clean up.' }),
    total: amount.meta({ description: 'ms in total.' }),
    fileCount: amount,
    totalBytes: amount,
    preflight: amount.meta({ description: 'ms to check the build before anything is sent.' }),
    result: releaseBuildResultSchema,
  })
  .partial()
  .refine(report => Object.keys(report).length > 0, 'must have at least one field')
  .meta({ id: 'BuildReport', minProperties: 1, description: 'A build report. At least one field is required.' })

/** Response to a build report. */
export const telemetryResponseSchema = z.strictObject({ ok: z.literal(true) }).meta({ id: 'TelemetryResponse' })

/** A build report. */
export type BuildReport = z.infer<typeof buildReportSchema>

/** Most files of a manifest on one page. A manifest may have a hundred thousand files. */
const MANIFEST_PAGE_MAX = 10_000
/** Most build reports of a release that are returned. */
export const BUILD_REPORTS_MAX = 10

const instant = z.iso.datetime()
const count = z.number().int().min(0)

/** Common fields of a release. Without a completed manifest the counters are 0 and `completedAt` is null. */
const release = {
  slug: releaseSlugSchema,
  version: z.string().meta({ description: 'The registered version: the `service.version` of its telemetry.' }),
  surfaceId: z.string(),
  commit: z.string().nullable(),
  createdAt: instant,
  sourceMapCount: count.meta({ description: 'Number of maps in its manifest.' }),
  sourceFileCount: count.meta({ description: 'Number of source files, as stated by the completion.' }),
  completedAt: instant.nullable().meta({ description: 'Null until the first completion.' }),
}

/** A release, as lists show it. */
const listedReleaseSchema = z.strictObject(release).meta({ id: 'Release' })
/** A release, as lists show it. */
export type ListedRelease = z.infer<typeof listedReleaseSchema>

/** Query of GET /v3/releases. Surface and version name one release, a version alone one of each surface. */
export const listReleasesQuerySchema = pageQuerySchema
  .extend({
    surface: surfaceFilter.meta({
      description: 'Only the release of this surface, with `version`.',
      example: EXAMPLE.surfaceId,
    }),
    version: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .meta({ description: 'Only the releases of this version, one of each surface.', example: EXAMPLE.version }),
  })
  .refine(({ surface, version }) => surface === undefined || version !== undefined, {
    path: ['version'],
    error: 'must be given with "surface"',
  })

/** Response of GET /v3/releases, last registered first. */
export const releasesPageSchema = z
  .strictObject({ releases: z.array(listedReleaseSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ReleasesPage' })
/** Response of GET /v3/releases. */
export type ReleasesPage = z.infer<typeof releasesPageSchema>

/** A build report as it was sent (docs/api/releases.md#build-report). Fields that were not sent are left out. */
const storedBuildReportSchema = z
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
  .meta({
    id: 'StoredBuildReport',
    description: 'A build report as it was sent. Fields that were not sent are left out.',
  })
/** A build report as it was sent. */
export type StoredBuildReport = z.infer<typeof storedBuildReportSchema>

/** A source map of the manifest, with its size, and whether its bytes were compared with `hash`. */
const listedFileSchema = z
  .strictObject({
    path: z.string(),
    hash: z.string(),
    debugId: z.string(),
    chunkUrl: z.string(),
    size: count.meta({ description: 'Size of the stored map in bytes.' }),
    verified: z
      .boolean()
      .meta({ description: 'Whether the bytes match `hash`. False if the form of `hash` is unknown.' }),
  })
  .meta({ id: 'ManifestFile' })
/** A source map of the manifest. */
export type ListedFile = z.infer<typeof listedFileSchema>

/** A page of the manifest, in the order of its completion. */
const manifestPageSchema = z.strictObject({
  completedAt: instant,
  files: z.array(listedFileSchema),
  nextCursor: nextCursorSchema,
})

/** Stack frames of a release, and those that were resolved. `share` is null while there are none. */
const symbolicationShareSchema = z
  .strictObject({
    resolvedFrames: count,
    totalFrames: count,
    share: z.number().min(0).max(1).nullable().meta({ description: 'Null while there are no frames.' }),
  })
  .meta({
    id: 'SymbolicationShare',
    description: 'Stack frames of this release, and how many of them its source maps resolved.',
  })
/** Stack frames of a release, and those that were resolved. */
export type SymbolicationShare = z.infer<typeof symbolicationShareSchema>

/** Response of GET /v3/releases/{slug}. Counters and manifest belong to the same completion. */
export const releaseAnswerSchema = z.strictObject({
  release: z
    .strictObject({
      ...release,
      metadata: z.record(z.string(), jsonValueSchema).nullable().meta({ description: 'Free-form data of the build.' }),
      symbolication: symbolicationShareSchema,
      buildReports: z
        .array(storedBuildReportSchema)
        .meta({ description: `Newest first, at most ${BUILD_REPORTS_MAX}.` }),
      manifest: manifestPageSchema.nullable().meta({ description: 'Null until the first completion.' }),
    })
    .meta({ id: 'ReleaseDetails' }),
})
/** Response of GET /v3/releases/{slug}. */
export type ReleaseAnswer = z.infer<typeof releaseAnswerSchema>

/** Query of GET /v3/releases/{slug}: the page of its manifest. */
export const manifestQuerySchema = z.object({
  limit: pageLimit(MANIFEST_PAGE_MAX, MANIFEST_PAGE_MAX).meta({
    description: 'The maximum number of files of the manifest.',
  }),
  cursor: cursorSchema.meta({ description: 'The `manifest.nextCursor` of the previous page.' }),
})
