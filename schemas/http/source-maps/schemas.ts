import { z } from 'zod'

import { wholeNumber } from '../fields.ts'

const MAX_PATH_BYTES = 1_024

/** The build-relative path of a source map (CONTRACT 4.5). */
export const sourceMapPathSchema = z
  .string({ error: issue => (issue.input === undefined ? 'is required' : 'must be a string') })
  .superRefine((path, context) => {
    const fault = pathFault(path)
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  })
  .meta({
    description: `The path of the map in its build: relative, separated by \`/\`, without \`..\`, at most ${MAX_PATH_BYTES} bytes.`,
    minLength: 1,
    maxLength: MAX_PATH_BYTES,
  })

/** The rule that a path breaks. */
function pathFault(path: string): string | undefined {
  if (path === '') return 'must not be empty'
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `must have at most ${MAX_PATH_BYTES} bytes`
  if (!path.isWellFormed()) return 'must be well-formed Unicode'
  if (path.includes('\0')) return 'must not hold NUL'
  if (path.includes('\\')) return 'must be separated by /'
  if (path.startsWith('/')) return 'must be relative'
  if (path.split('/').includes('..')) return 'must not hold a part ..'
  return undefined
}

/** Parts of one map (CONTRACT 4.5). */
const MAX_PARTS = 4_096

/** The query of PUT /v3/releases/{releaseSlug}/source-maps/upload (spec 4.6). */
export const sourceMapQuerySchema = z.object({ path: sourceMapPathSchema })

/** The query of PUT /v3/releases/{releaseSlug}/source-maps (spec 4.5). */
export const sourceMapPartQuerySchema = z.object({
  part: wholeNumber(0, MAX_PARTS - 1).meta({ description: 'Which part it is; parts are joined in this order.' }),
  path: sourceMapPathSchema,
})

/** The answer of both. */
export const uploadedSourceMapSchema = z
  .strictObject({ objectKey: z.string().meta({ description: 'Where the object store has or will have it.' }) })
  .meta({ id: 'UploadedSourceMap' })

/** The forms of a map's hash (CONTRACT 4.7), for readers of the document. */
export const MAP_HASH = 'Of the bytes, in hex: SHA-256, SHA-1 or MD5. Of another form it is kept, and not compared.'

/** An entry of the manifest (spec 2.7). */
export const manifestEntrySchema = z
  .object({
    path: sourceMapPathSchema,
    hash: z.string().max(200).meta({ description: MAP_HASH }),
    debugId: z.string().max(200).meta({ description: 'Of the map and its script; may be empty.' }),
    chunkUrl: z.string().max(2_048).meta({ description: 'Address of the script, `~/` for any host; may be empty.' }),
  })
  .meta({ id: 'ManifestEntry' })
export type ManifestEntry = z.infer<typeof manifestEntrySchema>

/** POST /v3/releases/{releaseSlug}/source-maps/complete (spec 4.7). Its body has at most 16 MiB. */
export const completeSourceMapsSchema = z
  .object({
    files: z.array(manifestEntrySchema),
    sourceFileCount: z.number().int().min(0).meta({ description: 'Source files that the maps are of.' }),
  })
  .meta({ id: 'CompleteSourceMapsRequest' })
export type CompleteSourceMaps = z.infer<typeof completeSourceMapsSchema>

export const completedSourceMapsSchema = z
  .strictObject({ ok: z.boolean(), fileCount: z.number().int().min(0) })
  .meta({ id: 'CompletedSourceMaps' })

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
