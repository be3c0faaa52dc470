import { z } from 'zod'

/** The description of a backup of the directory. It is stored after all its parts, and without it there is no backup. */
export const backupSchema = z.object({
  version: z.literal(1),
  /** Time of creation and a random end. Names sort by time. */
  name: z.string(),
  createdAt: z.iso.datetime(),
  workspaces: z.number().int().min(1),
  records: z.number().int().min(1),
  isEncrypted: z.boolean(),
  /** The parts as they are stored, in their order. SHA-256 in hex. */
  parts: z.array(z.object({ bytes: z.number().int().min(1), sha256: z.string().regex(/^[0-9a-f]{64}$/) })).min(1),
})
/** Value of {@link backupSchema}. */
export type Backup = z.infer<typeof backupSchema>
