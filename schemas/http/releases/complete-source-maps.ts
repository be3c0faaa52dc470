import { z } from 'zod'
import { sourceMapPathSchema } from '../../records/source-map-path.ts'

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
