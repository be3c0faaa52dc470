import type { Redis } from 'ioredis'
import { type WorkspaceKey, workspaceKeySchema } from '../../schemas/records/directory.ts'
import { DirectoryRecordError, directoryKeys as keys, parseRecord } from './record.ts'
import { type ListPage, listNewest } from './sorted-index.ts'
import { decideAndCommit } from './transaction.ts'
import { KEY_REQUEST_LIFETIME_MS, writeWorkspaceKey } from './writes.ts'

/** API keys of a workspace. `now` is Unix milliseconds. */
export interface WorkspaceKeyRecords {
  /**
   * Stores a key, unless the same user has made one in this workspace with the same idempotency key in the 24 h before
   * `createdAt`: then that one is the answer, as it stands, and nothing is stored. Refuses beyond WORKSPACE_KEYS_MAX.
   */
  createWorkspaceKey(key: WorkspaceKey): Promise<CreatedWorkspaceKey>
  workspaceKey(workspaceId: string, keyId: string): Promise<WorkspaceKey | undefined>
  /** By the digest alone: a presented key is what tells the workspace. */
  workspaceKeyByDigest(digest: string): Promise<WorkspaceKey | undefined>
  /** Revoked ones too, newest first. A page shorter than its limit is the last one. */
  workspaceKeys(workspaceId: string, page: ListPage): Promise<WorkspaceKey[]>
  /** 'revoked' also when it was before. */
  revokeWorkspaceKey(workspaceId: string, keyId: string, now: number): Promise<'revoked' | 'absent'>
}

/** What a workspace may have, revoked and expired ones too. Several made at once may pass it by as many. */
export const WORKSPACE_KEYS_MAX = 10_000

export interface CreatedWorkspaceKey {
  readonly outcome: 'created' | 'exists' | 'too_many_keys'
  readonly key: WorkspaceKey
}

export function createWorkspaceKeyRecords(redis: Redis): WorkspaceKeyRecords {
  async function loadText(workspaceId: string, keyId: string): Promise<string | undefined> {
    const digest = await redis.hget(keys.workspaceKeyDigests(workspaceId), keyId)
    return digest === null ? undefined : ((await redis.get(keys.workspaceCredential(digest))) ?? undefined)
  }

  async function byDigest(digest: string): Promise<WorkspaceKey | undefined> {
    const text = await redis.get(keys.workspaceCredential(digest))
    return text === null ? undefined : parseRecord(keys.workspaceCredential(digest), text, workspaceKeySchema)
  }

  async function load(workspaceId: string, ids: readonly string[]): Promise<(WorkspaceKey | undefined)[]> {
    const digests = await redis.hmget(keys.workspaceKeyDigests(workspaceId), ...ids)
    const texts = await redis.mget(digests.map(digest => keys.workspaceCredential(digest ?? '')))
    return texts.map((text, i) => (text === null ? undefined : parseRecord(ids[i] ?? '', text, workspaceKeySchema)))
  }

  return {
    createWorkspaceKey(key) {
      const { workspaceId, idempotencyKey, createdBy, createdAt } = key
      const request = keys.keyRequest(workspaceId, idempotencyKey, createdBy)
      return decideAndCommit<CreatedWorkspaceKey>(redis, async () => {
        const made = await redis.get(request)
        if (made !== null) {
          const stored = await byDigest(made)
          if (!stored) throw new DirectoryRecordError(`${request}: its key is gone`)
          // The clock of whoever asks decides; that of Redis only clears away.
          const ageMs = Date.parse(createdAt) - Date.parse(stored.createdAt)
          if (ageMs < KEY_REQUEST_LIFETIME_MS) return { result: { outcome: 'exists', key: stored } }
        }
        if ((await redis.zcard(keys.workspaceKeys(workspaceId))) >= WORKSPACE_KEYS_MAX) {
          return { result: { outcome: 'too_many_keys', key } }
        }
        const { commands } = writeWorkspaceKey(key, Date.parse(createdAt))
        return { commit: { guards: [['GET', request, made ?? '']], commands }, result: { outcome: 'created', key } }
      })
    },
    async workspaceKey(workspaceId, keyId) {
      const text = await loadText(workspaceId, keyId)
      return text === undefined ? undefined : parseRecord(keyId, text, workspaceKeySchema)
    },
    workspaceKeyByDigest: byDigest,
    workspaceKeys: (workspaceId, page) =>
      listNewest(redis, keys.workspaceKeys(workspaceId), page, ids => load(workspaceId, ids)),
    revokeWorkspaceKey(workspaceId, keyId, now) {
      return decideAndCommit(redis, async () => {
        const text = await loadText(workspaceId, keyId)
        if (text === undefined) return { result: 'absent' as const }
        const key = parseRecord(keyId, text, workspaceKeySchema)
        if (key.revokedAt !== null) return { result: 'revoked' as const }
        const { key: at, commands } = writeWorkspaceKey({ ...key, revokedAt: new Date(now).toISOString() }, now)
        return { commit: { guards: [['GET', at, text]], commands }, result: 'revoked' as const }
      })
    },
  }
}
