import type { z } from 'zod'

/** A record in Redis is not what its schema says: a fault of the store, never of the client. */
export class DirectoryRecordError extends Error {
  override readonly name = 'DirectoryRecordError'
}

/** Published whenever a credential changes; its message is the digest of the key concerned. */
export const CREDENTIAL_CHANGES_CHANNEL = 'penstock:credential-changes'

/** The record that a key of Redis holds. Throws a DirectoryRecordError. */
export function parseRecord<S extends z.ZodType>(key: string, text: string, schema: S): z.infer<S> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DirectoryRecordError(`${key}: not JSON`, { cause: error })
  }
  const result = schema.safeParse(value)
  if (!result.success) throw new DirectoryRecordError(`${key}: ${result.error.message}`)
  return result.data
}

/**
 * Where records and their indexes are. Indexes by name are sorted sets whose scores are all 0 (walked in the order of
 * their bytes), those by time are scored with Unix milliseconds.
 *
 * - user, workspace, member, surface, credential, workspaceCredential: one JSON record each (string)
 * - slug: workspace id (string)
 * - users, workspaces, members: ids by name
 * - surfaces: ids of the surfaces there are, by time
 * - surfaceIds: ids of all that there are or were, by name: keys, rows and objects of a deleted one remain
 * - surfaceKeys: digests of a surface's keys (set); only ever grows
 * - workspaceKeys: key ids by time
 * - workspaceKeyDigests: key id → digest (hash)
 * - keyRequest: digest of the key that this request of a user has made (string, for 24 h)
 * - receiptSecret: what the ids of receipts are sealed with, a JSON record too (string)
 */
export const directoryKeys = {
  user: (id: string) => `penstock:user:${id}`,
  users: 'penstock:users',
  receiptSecret: 'penstock:receipt-secret',
  workspace: (id: string) => `penstock:workspace:${id}`,
  workspaces: 'penstock:workspaces',
  slug: (slug: string) => `penstock:workspace-slug:${slug}`,
  member: (workspaceId: string, userId: string) => `penstock:workspace:${workspaceId}:member:${userId}`,
  members: (workspaceId: string) => `penstock:workspace:${workspaceId}:members`,
  surface: (workspaceId: string, surfaceId: string) => `penstock:workspace:${workspaceId}:surface:${surfaceId}`,
  surfaces: (workspaceId: string) => `penstock:workspace:${workspaceId}:surfaces`,
  surfaceIds: (workspaceId: string) => `penstock:workspace:${workspaceId}:surface-ids`,
  surfaceKeys: (workspaceId: string, surfaceId: string) =>
    `penstock:workspace:${workspaceId}:surface:${surfaceId}:keys`,
  credential: (digest: string) => `penstock:credential:${digest}`,
  workspaceCredential: (digest: string) => `penstock:workspace-credential:${digest}`,
  workspaceKeys: (workspaceId: string) => `penstock:workspace:${workspaceId}:keys`,
  workspaceKeyDigests: (workspaceId: string) => `penstock:workspace:${workspaceId}:key-digests`,
  keyRequest: (workspaceId: string, idempotencyKey: string, userId: string) =>
    `penstock:workspace:${workspaceId}:key-request:${idempotencyKey}:${userId}`,
}
