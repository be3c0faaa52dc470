import { z } from 'zod'
import { sourceMapPathSchema } from '../source-map-path.ts'

/** An entry of the manifest (spec 2.7). */
export const manifestEntrySchema = z.object({
  path: sourceMapPathSchema,
  hash: z.string().max(200),
  debugId: z.string().max(200),
  chunkUrl: z.string().max(2_048),
})
export type ManifestEntry = z.infer<typeof manifestEntrySchema>

/** POST /v3/releases/{releaseSlug}/source-maps/complete (spec 4.7). Its body has at most 16 MiB. */
export const completeSourceMapsSchema = z.object({
  files: z.array(manifestEntrySchema),
  sourceFileCount: z.number().int().min(0),
})
export type CompleteSourceMaps = z.infer<typeof completeSourceMapsSchema>

export const completedSourceMapsSchema = z.strictObject({ ok: z.boolean(), fileCount: z.number().int().min(0) })
