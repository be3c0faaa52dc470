import type { z } from 'zod'

/** A record in Redis that does not match its schema. The client did not cause it. */
export class DirectoryRecordError extends Error {
  override readonly name = 'DirectoryRecordError'
}

/** Channel on which every change of a credential is published. The message is the digest of the key. */
export const CREDENTIAL_CHANGES_CHANNEL = 'penstock:credential-changes'

/** Parses the record of a Redis key. Throws a DirectoryRecordError. */
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
 * Redis keys of the records and their indexes. An index by name is a sorted set whose scores are all 0, which is read in the
 * order of its bytes. An index by time is scored with Unix milliseconds.
 *
 * - user, workspace, member, surface, credential, workspaceCredential: one JSON record each (string)
 * - slug: workspace id (string)
 * - users, workspaces, members: ids by name
 * - surfaces: ids of the existing surfaces, by time
 * - surfaceIds: ids of existing and deleted surfaces, by name; keys, rows and objects of a deleted surface remain
 * - surfaceKeys: digests of a surface's keys (set); only ever grows
 * - workspaceKeys: key ids by time
 * - workspaceKeyDigests: key id → digest (hash)
 * - keyRequest: digest of the key that this request of a user has created (string, for 24 h)
 * - receiptSecret: the secret that seals receipt ids, as a JSON record (string)
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
