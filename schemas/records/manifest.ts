import { z } from 'zod'

/** A source map of a release: what its completion states, and what the service has found. */
export const manifestFileSchema = z.object({
  path: z.string(),
  hash: z.string(),
  debugId: z.string(),
  chunkUrl: z.string(),
  /** SHA-256 of the stored bytes, in hex. Their object is named after it. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size: z.number().int().min(0),
  /** Whether the bytes match `hash`. False if the form of `hash` is unknown. */
  verified: z.boolean(),
})
/** A source map of a release. */
export type ManifestFile = z.infer<typeof manifestFileSchema>

/**
 * The object that a ManifestPointer names. It is written only once, because every completion has its own sequence
 * number.
 */
export const manifestSchema = z.object({
  version: z.literal(1),
  releaseSlug: z.string(),
  sequence: z.number().int().min(1),
  files: z.array(manifestFileSchema),
  sourceFileCount: z.number().int().min(0),
  completedAt: z.iso.datetime(),
})
/** The manifest of a release. */
export type Manifest = z.infer<typeof manifestSchema>
