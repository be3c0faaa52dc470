import type { Redis } from 'ioredis'
import { type WorkspaceKey, workspaceKeySchema } from '../../schemas/records/directory.ts'
import { type Author, writeChange } from './changes/change-log.ts'
import { decideOnce } from './creations.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { type ListPage, listNewest } from './sorted-index.ts'
import { type Command, type Decision, decideAndCommit, type Guard } from './transaction.ts'
import { writeWorkspaceKey } from './writes.ts'

/** Stores the API keys of a workspace. `now` is in Unix milliseconds. */
export interface WorkspaceKeyRecords {
  /**
   * Stores a new key. Refuses one of an author who is no member any more, and beyond WORKSPACE_KEYS_MAX, unless some keys are
   * revoked or expired, which are removed.
   */
  createWorkspaceKey(key: WorkspaceKey, author?: Author): Promise<'created' | 'too_many_keys' | 'no_member'>
  workspaceKey(workspaceId: string, keyId: string): Promise<WorkspaceKey | undefined>
  /** Finds a key by its digest alone. The key identifies its workspace. */
  workspaceKeyByDigest(digest: string): Promise<WorkspaceKey | undefined>
  /** Returns a page of keys, revoked ones included, newest first. A page shorter than its limit is the last one. */
  workspaceKeys(workspaceId: string, page: ListPage): Promise<WorkspaceKey[]>
  /** Returns 'revoked' also for a key that was already revoked. */
  revokeWorkspaceKey(workspaceId: string, keyId: string, now: number, author?: Author): Promise<'revoked' | 'absent'>
}

/**
 * Greatest number of keys of a workspace. Revoked and expired keys count, but make room for new ones. Concurrent requests may
 * exceed it.
 */
export const WORKSPACE_KEYS_MAX = 10_000
/** Number of ended keys that one creation removes when there are too many. */
const REMOVED_AT_ONCE = 100

/** Creates the part of the directory that stores the API keys of workspaces. */
export function createWorkspaceKeyRecords(redis: Redis): WorkspaceKeyRecords {
  async function loadText(workspaceId: string, keyId: string): Promise<string | undefined> {
    const digest = await redis.hget(keys.workspaceKeyDigests(workspaceId), keyId)
    return digest === null ? undefined : ((await redis.get(keys.workspaceCredential(digest))) ?? undefined)
  }

  async function load(workspaceId: string, ids: readonly string[]): Promise<(WorkspaceKey | undefined)[]> {
    const digests = await redis.hmget(keys.workspaceKeyDigests(workspaceId), ...ids)
    const texts = await redis.mget(digests.map(digest => keys.workspaceCredential(digest ?? '')))
    return texts.map((text, i) => (text === null ? undefined : parseRecord(ids[i] ?? '', text, workspaceKeySchema)))
  }

  return {
    createWorkspaceKey: (key, author) => decideOnce(redis, author?.once, () => decideKey(redis, key, author)),
    async workspaceKey(workspaceId, keyId) {
      const text = await loadText(workspaceId, keyId)
      return text === undefined ? undefined : parseRecord(keyId, text, workspaceKeySchema)
    },
    workspaceKeyByDigest: digest => findByDigest(redis, digest),
    workspaceKeys: (workspaceId, page) =>
      listNewest(redis, keys.workspaceKeys(workspaceId), page, ids => load(workspaceId, ids)),
    revokeWorkspaceKey(workspaceId, keyId, now, author) {
      return decideAndCommit(redis, async () => {
        const text = await loadText(workspaceId, keyId)
        if (text === undefined) return { result: 'absent' as const }
        const key = parseRecord(keyId, text, workspaceKeySchema)
        if (key.revokedAt !== null) return { result: 'revoked' as const }
        const { key: at, commands } = writeWorkspaceKey({ ...key, revokedAt: new Date(now).toISOString() })
        // The first command frees memory, so that a Redis that is full runs the step (`transaction.ts`).
        const frees: Command = ['ZREM', keys.workspaceKeyEnds(workspaceId), keyId]
        const logged = writeChange(workspaceId, author, { action: 'api-key.revoked', subject: keyId })
        return {
          transaction: { guards: [['GET', at, text]], commands: [frees, ...commands, ...logged] },
          result: 'revoked' as const,
        }
      })
    },
  }
}

async function findByDigest(redis: Redis, digest: string): Promise<WorkspaceKey | undefined> {
  const text = await redis.get(keys.workspaceCredential(digest))
  return text === null ? undefined : parseRecord(keys.workspaceCredential(digest), text, workspaceKeySchema)
}

/**
 * Returns the guards by which a key that a member makes is stored only while he is one, so that who is removed meanwhile leaves
 * none; undefined if he is not.
 */
export async function guardMaker(
  redis: Redis,
  member: string,
  author: Author | undefined,
): Promise<Guard[] | undefined> {
  if (!author?.by) return []
  const text = await redis.get(member)
  return text === null ? undefined : [['GET', member, text]]
}

/** Decides how storing a new key would change the current state. */
async function decideKey(
  redis: Redis,
  key: WorkspaceKey,
  author: Author | undefined,
): Promise<Decision<'created' | 'too_many_keys' | 'no_member'>> {
  const { workspaceId, createdAt, createdBy } = key
  const guards = await guardMaker(redis, keys.member(workspaceId, createdBy), author)
  if (guards === undefined) return { result: 'no_member' }
  const removals = await makeRoom(redis, workspaceId, Date.parse(createdAt))
  if (removals === undefined) return { result: 'too_many_keys' }
  const { commands } = writeWorkspaceKey(key)
  const { id: subject, name, scopes: permissions } = key
  const logged = writeChange(workspaceId, author, { action: 'api-key.created', subject, name, permissions })
  return { transaction: { guards, commands: [...commands, ...removals, ...logged] }, result: 'created' }
}

/**
 * Returns the commands that make room for a new key, which are none as long as there are few enough. Returns undefined if
 * there are too many, and none of them has ended.
 */
async function makeRoom(redis: Redis, workspaceId: string, now: number): Promise<Command[] | undefined> {
  if ((await redis.zcard(keys.workspaceKeys(workspaceId))) < WORKSPACE_KEYS_MAX) return []
  const ends = keys.workspaceKeyEnds(workspaceId)
  const ended = await redis.zrangebyscore(ends, '-inf', now, 'LIMIT', 0, REMOVED_AT_ONCE)
  if (ended.length === 0) return undefined
  const digests = await redis.hmget(keys.workspaceKeyDigests(workspaceId), ...ended)
  return ended.flatMap((id, i): Command[] => [
    ['DEL', keys.workspaceCredential(digests[i] ?? '')],
    ['ZREM', keys.workspaceKeys(workspaceId), id],
    ['HDEL', keys.workspaceKeyDigests(workspaceId), id],
    ['ZREM', ends, id],
  ])
}
