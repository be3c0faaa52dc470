import { z } from 'zod'
import { sourceMapPathSchema } from '../../records/source-map-path.ts'
import { MAP_HASH } from './complete-source-maps.ts'

/** What a source map may have (CONTRACT 4.5, 4.6). */
export const SOURCE_MAP_MAX_BYTES = 64 * 1024 * 1024

/** POST /v3/releases/{releaseSlug}/source-maps/sign: declares maps (CONTRACT section 5). */
export const signSourceMapsSchema = z
  .object({
    files: z
      .array(
        z
          .object({
            path: sourceMapPathSchema,
            // Over SOURCE_MAP_MAX_BYTES is RELEASE_SIGN_FILE_TOO_LARGE, which is the route's to say.
            size: z.number().int().min(1).meta({ description: 'Bytes; at most 64 MiB.' }),
            hash: z.string().min(1).max(200).meta({ description: MAP_HASH }),
          })
          .meta({ id: 'DeclaredSourceMap' }),
      )
      .min(1),
  })
  .meta({ id: 'SignSourceMapsRequest' })
export type SignSourceMaps = z.infer<typeof signSourceMapsSchema>

const signedFileSchema = z.union([
  z
    .strictObject({
      path: z.string(),
      objectKey: z.string(),
      uploadUrl: z.url().meta({ description: 'PUT the map here, with no credential and exactly the declared size.' }),
      expiresAt: z.iso.datetime(),
    })
    .meta({ id: 'SourceMapToUpload' }),
  z
    .strictObject({ path: z.string(), objectKey: z.string(), alreadyUploaded: z.literal(true) })
    .meta({ id: 'KnownSourceMap', description: 'The workspace has these bytes: nothing needs to be sent.' }),
])
export type SignedFile = z.infer<typeof signedFileSchema>

/** In the order in which they were declared. */
export const signedSourceMapsSchema = z
  .strictObject({ files: z.array(signedFileSchema) })
  .meta({ id: 'SignedSourceMaps' })
