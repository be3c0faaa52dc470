import { z } from 'zod'

/** A source map of a release: what the completion said of it, and what was found. */
export const manifestFileSchema = z.object({
  path: z.string(),
  hash: z.string(),
  debugId: z.string(),
  chunkUrl: z.string(),
  /** Of the stored bytes: names their object. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size: z.number().int().min(0),
  /** False when `hash` is of a form that nothing can be compared with. */
  verified: z.boolean(),
})
export type ManifestFile = z.infer<typeof manifestFileSchema>

/** The object that a ManifestPointer names. It is never written twice: another completion has another sequence. */
export const manifestSchema = z.object({
  version: z.literal(1),
  releaseSlug: z.string(),
  sequence: z.number().int().min(1),
  files: z.array(manifestFileSchema),
  sourceFileCount: z.number().int().min(0),
  completedAt: z.iso.datetime(),
})
export type Manifest = z.infer<typeof manifestSchema>
