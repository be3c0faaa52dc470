import { z } from 'zod'
import { releaseSlugSchema } from '../release-slug.ts'

/** POST /v3/releases (CONTRACT section 5). Unknown fields are refused: a misspelled `commit` would be lost in silence. */
export const registerReleaseSchema = z.strictObject({
  /** What the telemetry of this release carries as `service.version`. */
  version: z.string().min(1).max(200),
  commit: z.string().max(200).optional(),
  metadata: z.record(z.string(), z.json()).optional(),
})
export type RegisterRelease = z.infer<typeof registerReleaseSchema>

export const registeredReleaseSchema = z.strictObject({ releaseSlug: releaseSlugSchema })
