import { z } from 'zod'

const digest = z.string().regex(/^[0-9a-f]{64}$/)

/**
 * Record of a creation that its client may repeat (docs/api/requests.md#idempotency). The secret of a created key is not in it,
 * but the server derives it again from its pepper, `salt` and `id`.
 */
export const creationSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  /** SHA-256 of the operation, the caller and the idempotency key. */
  id: digest,
  /** SHA-256 of the rest of the request. */
  fingerprint: digest,
  createdAt: z.iso.datetime(),
  /** The response without the secret of a key. */
  answer: z.record(z.string(), z.unknown()),
  salt: digest.optional(),
})
/** Record of a creation that its client may repeat. */
export type Creation = z.infer<typeof creationSchema>
