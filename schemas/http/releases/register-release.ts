import { z } from 'zod'
import { releaseSlugSchema } from '../../records/release-slug.ts'
import { jsonObjectSchema } from '../json-object.ts'

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
