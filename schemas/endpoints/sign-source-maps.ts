import { z } from 'zod'
import { sourceMapPathSchema } from '../source-map-path.ts'

/** What a source map may have (CONTRACT 4.5, 4.6). */
export const SOURCE_MAP_MAX_BYTES = 64 * 1024 * 1024

/** POST /v3/releases/{releaseSlug}/source-maps/sign: declares maps (CONTRACT section 5). */
export const signSourceMapsSchema = z.object({
  files: z
    .array(
      z.object({
        path: sourceMapPathSchema,
        /** Bytes. Over SOURCE_MAP_MAX_BYTES is RELEASE_SIGN_FILE_TOO_LARGE, which is the route's to say. */
        size: z.number().int().min(1),
        /** In the forms of 4.7. */
        hash: z.string().min(1).max(200),
      }),
    )
    .min(1),
})
export type SignSourceMaps = z.infer<typeof signSourceMapsSchema>

const signedFileSchema = z.union([
  z.strictObject({ path: z.string(), objectKey: z.string(), uploadUrl: z.url(), expiresAt: z.iso.datetime() }),
  z.strictObject({ path: z.string(), objectKey: z.string(), alreadyUploaded: z.literal(true) }),
])
export type SignedFile = z.infer<typeof signedFileSchema>

/** In the order in which they were declared. */
export const signedSourceMapsSchema = z.strictObject({ files: z.array(signedFileSchema) })
