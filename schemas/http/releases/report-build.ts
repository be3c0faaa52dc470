import { z } from 'zod'

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
