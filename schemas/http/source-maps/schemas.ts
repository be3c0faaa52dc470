import { z } from 'zod'

import { wholeNumber } from '../fields.ts'
import { formatBytes, SOURCE_MAP_MAX_BYTES } from '../limits.ts'
import { CHUNK_URL_CHARACTERS, SOURCE_MAP_PATH_BYTES, sourceMapPathFault } from './path-fault.ts'

/** Path of a source map, relative to its build (docs/api/releases.md#source-map-part). */
const sourceMapPathSchema = z
  .string()
  .superRefine((path, context) => {
    const fault = sourceMapPathFault(path)
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  })
  .meta({
    description: `The path of the map in its build: relative, separated by \`/\`, without \`..\`, at most ${SOURCE_MAP_PATH_BYTES} bytes.`,
    minLength: 1,
    maxLength: SOURCE_MAP_PATH_BYTES,
  })

/** Most parts of one map (docs/api/releases.md#source-map-part). */
const MAX_PARTS = 4_096

/** Query of PUT /v3/releases/{releaseSlug}/source-maps/upload (docs/api/releases.md#source-map-single). */
export const sourceMapQuerySchema = z.object({ path: sourceMapPathSchema })

/** Query of PUT /v3/releases/{releaseSlug}/source-maps (docs/api/releases.md#source-map-part). */
export const sourceMapPartQuerySchema = z.object({
  part: wholeNumber(0, MAX_PARTS - 1).meta({ description: 'Index of the part. Parts are joined in this order.' }),
  path: sourceMapPathSchema,
})

/** Response to the upload of a map or of a part. */
export const uploadedSourceMapSchema = z
  .strictObject({ objectKey: z.string().meta({ description: 'The key in the object store, now or later.' }) })
  .meta({ id: 'UploadedSourceMap' })

/** Description of the hash of a map (docs/api/releases.md#source-map-complete). */
const MAP_HASH =
  'Hash of the bytes in hex: SHA-256, SHA-1 or MD5. A hash of another form is stored without being compared.'

/** A map, as a completion names it. */
export const manifestEntrySchema = z
  .object({
    path: sourceMapPathSchema,
    hash: z.string().max(200).meta({ description: MAP_HASH }),
    debugId: z.string().max(200).meta({ description: 'Debug id of the map and its script. May be empty.' }),
    chunkUrl: z
      .string()
      .max(CHUNK_URL_CHARACTERS)
      .meta({ description: 'Address of the script; `~/` represents any host. May be empty.' }),
  })
  .meta({ id: 'ManifestEntry' })
/** A map, as a completion names it. */
export type ManifestEntry = z.infer<typeof manifestEntrySchema>

/** Body of POST /v3/releases/{releaseSlug}/source-maps/complete (docs/api/releases.md#source-map-complete). */
export const completeSourceMapsSchema = z
  .object({
    files: z.array(manifestEntrySchema),
    sourceFileCount: z.number().int().min(0).meta({ description: 'Number of source files that the maps cover.' }),
  })
  .meta({ id: 'CompleteSourceMapsRequest' })
/** Body of POST …/source-maps/complete. */
export type CompleteSourceMaps = z.infer<typeof completeSourceMapsSchema>

/** Response of POST …/source-maps/complete. */
export const completedSourceMapsSchema = z
  .strictObject({ ok: z.boolean(), fileCount: z.number().int().min(0) })
  .meta({ id: 'CompletedSourceMaps' })

/** A map to upload. */
export const declaredFileSchema = z
  .object({
    path: sourceMapPathSchema,
    // The route refuses a size over SOURCE_MAP_MAX_BYTES, with RELEASE_SIGN_FILE_TOO_LARGE.
    size: z
      .number()
      .int()
      .min(1)
      .meta({ description: `Size in bytes, at most ${formatBytes(SOURCE_MAP_MAX_BYTES)}.` }),
    hash: z.string().min(1).max(200).meta({ description: MAP_HASH }),
  })
  .meta({ id: 'DeclaredSourceMap' })

/** Body of POST /v3/releases/{releaseSlug}/source-maps/sign: the maps to upload (docs/api/releases.md#sign). */
export const signSourceMapsSchema = z
  .object({ files: z.array(declaredFileSchema).min(1) })
  .meta({ id: 'SignSourceMapsRequest' })
/** Body of POST …/source-maps/sign. */
export type SignSourceMaps = z.infer<typeof signSourceMapsSchema>

const signedFileSchema = z.union([
  z
    .strictObject({
      path: z.string(),
      objectKey: z.string(),
      uploadUrl: z.url().meta({
        description: 'Address for the PUT of the map, without a credential and with exactly the declared size.',
      }),
      expiresAt: z.iso.datetime(),
    })
    .meta({ id: 'SourceMapToUpload' }),
  z
    .strictObject({ path: z.string(), objectKey: z.string(), alreadyUploaded: z.literal(true) })
    .meta({ id: 'KnownSourceMap', description: 'The workspace already has these bytes. Nothing needs to be sent.' }),
])
/** A declared map: where to upload it, or that its bytes are already stored. */
export type SignedFile = z.infer<typeof signedFileSchema>

/** Response of POST …/source-maps/sign, in the declared order. */
export const signedSourceMapsSchema = z
  .strictObject({ files: z.array(signedFileSchema) })
  .meta({ id: 'SignedSourceMaps' })
