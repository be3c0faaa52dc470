import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { MAKER_STATES } from '../../schemas/http/workspaces/schemas.ts'
import { type Member, type SurfaceKey, surfaceKeySchema, type WorkspaceKey } from '../../schemas/records/directory.ts'
import { earlier, keyEnd, keyState } from '../ids/key-state.ts'
import { type Author, writeChange } from './changes/change-log.ts'
import { decideOnce } from './creations.ts'
import { CREDENTIAL_CHANGES_CHANNEL, directoryKeys as keys, parseRecord } from './record.ts'
import { type Command, commitIf, decideAndCommit, type Guard } from './transaction.ts'
import { guardMaker } from './workspace-keys.ts'
import { writeSurfaceKey } from './writes.ts'

/**
 * Greatest number of keys of a surface. Revoked and expired keys count, but make room for new ones. All keys are read
 * together, which takes 50 ms for 5,000.
 */
export const SURFACE_KEYS_MAX = 5_000
/** Records that are validated without a pause, in which other requests are served. They take 3 ms. */
const RECORDS_PER_TURN = 250
/** Greatest number of surface keys of a workspace. Revoked and expired keys count, but make room for new ones. */
export const WORKSPACE_SURFACE_KEYS_MAX = 50_000
/** Number of revoked and expired keys that one creation removes when there are too many. */
const REMOVED_AT_ONCE = 100

/** State of the API key that made a surface key. `suspended`: its creator lacks MAKING_PERMISSION at present. */
export type MakerState = (typeof MAKER_STATES)[number]

/**
 * The permission to make keys of surfaces. The scope `release:write` belongs to it: a secret key that was made by an API
 * key works only while the creator of the API key has it (docs/api/credentials.md#makers).
 */
const MAKING_PERMISSION = 'org:surfaces:write'

/** The fields of a surface key that can change. A null or empty field is removed, an absent one stays as it is. */
interface SurfaceKeyChange {
  readonly quotas?: SurfaceKey['quotas'] | undefined
  readonly allowedOrigins?: SurfaceKey['allowedOrigins'] | null | undefined
}

/** Stores the keys of surfaces. `now` is in Unix milliseconds. */
export interface SurfaceKeyRecords {
  /** Stores a key even if its surface does not exist, and notifies every process that caches the key. */
  putSurfaceKey(key: SurfaceKey): Promise<void>
  /**
   * Stores a new key of an existing surface, so that deleting the surface revokes it. Refuses one of an author who is no member any
   * more, and beyond SURFACE_KEYS_MAX keys of the surface and WORKSPACE_SURFACE_KEYS_MAX of the workspace, unless some are revoked
   * or expired, which are removed.
   */
  createSurfaceKey(key: SurfaceKey, author?: Author): Promise<'created' | 'no_surface' | 'too_many_keys' | 'no_member'>
  /** Changes a key and publishes the change. Returns the changed key, or undefined if there is none with this id. */
  updateSurfaceKey(
    workspaceId: string,
    surfaceId: string,
    keyId: string,
    change: (key: SurfaceKey) => SurfaceKeyChange,
    author?: Author,
  ): Promise<SurfaceKey | undefined>
  /** Finds a key by its digest alone. The key identifies its workspace. */
  surfaceKeyByDigest(digest: string): Promise<SurfaceKey | undefined>
  /**
   * Finds a key by its digest as it is in force: a secret key ends with the API key that made it, and counts as revoked
   * while the creator of that API key may not make keys (docs/api/credentials.md#makers). Public keys stay.
   */
  effectiveSurfaceKey(digest: string): Promise<SurfaceKey | undefined>
  surfaceKey(workspaceId: string, surfaceId: string, keyId: string): Promise<SurfaceKey | undefined>
  /** Returns all keys of a surface, newest first. Revoked keys and deleted surfaces are included. */
  surfaceKeys(workspaceId: string, surfaceId: string): Promise<SurfaceKey[]>
  /** Returns 'revoked' also for a key that was already revoked. */
  revokeSurfaceKey(
    workspaceId: string,
    surfaceId: string,
    keyId: string,
    now: number,
    author?: Author,
  ): Promise<'revoked' | 'absent'>
  /** Returns the states of the API keys that made these keys, by the id of the API key. */
  makerStates(workspaceId: string, made: readonly SurfaceKey[], now: number): Promise<Map<string, MakerState>>
}

/** The other records that keys of surfaces depend on. */
interface SurfaceKeyDeps {
  readonly member: (workspaceId: string, userId: string) => Promise<Member | undefined>
  readonly workspaceKey: (workspaceId: string, keyId: string) => Promise<WorkspaceKey | undefined>
}

/** A record with its exact text. */
interface StoredKey {
  readonly text: string
  readonly key: SurfaceKey
}

/** Creates the part of the directory that stores the keys of surfaces. */
export function createSurfaceKeyRecords(redis: Redis, { member, workspaceKey }: SurfaceKeyDeps): SurfaceKeyRecords {
  /** Returns the API key that made a surface key, unless its creator may not make keys at present. */
  async function findMaker(workspaceId: string, keyId: string): Promise<{ key?: WorkspaceKey; mayMake: boolean }> {
    const key = await workspaceKey(workspaceId, keyId)
    if (key === undefined) return { mayMake: false }
    const creator = await member(workspaceId, key.createdBy)
    return { key, mayMake: creator?.permissions.includes(MAKING_PERMISSION) === true }
  }

  return {
    async putSurfaceKey(key) {
      await commitIf(redis, { guards: [], commands: writeSurfaceKey(key).commands })
    },
    createSurfaceKey: (key, author) => decideOnce(redis, author?.once, () => decideKey(redis, key, author)),
    updateSurfaceKey(workspaceId, surfaceId, keyId, change, author) {
      return decideAndCommit<SurfaceKey | undefined>(redis, async () => {
        const stored = await findStored(redis, workspaceId, surfaceId, keyId)
        if (stored === undefined) return { result: undefined }
        const key = changed(stored.key, change(stored.key))
        const guards: Guard[] = [['GET', keys.credential(key.digest), stored.text]]
        const logged = writeChange(workspaceId, author, { action: 'surface-key.changed', subject: keyId })
        return { transaction: { guards, commands: [...writeSurfaceKey(key).commands, ...logged] }, result: key }
      })
    },
    surfaceKeyByDigest: digest => findByDigest(redis, digest),
    async effectiveSurfaceKey(digest) {
      const key = await findByDigest(redis, digest)
      const makerId = key?.createdBy?.apiKeyId
      if (key === undefined || key.kind === 'public' || !makerId) return key
      const { key: maker, mayMake } = await findMaker(key.workspaceId, makerId)
      const endedAt = maker?.revokedAt ?? (mayMake ? null : key.createdAt)
      return {
        ...key,
        revokedAt: key.revokedAt ?? endedAt,
        expiresAt: earlier(key.expiresAt, maker?.expiresAt ?? null),
      }
    },
    async surfaceKey(workspaceId, surfaceId, keyId) {
      return (await findStored(redis, workspaceId, surfaceId, keyId))?.key
    },
    surfaceKeys: async (workspaceId, surfaceId) =>
      (await loadSurfaceKeys(redis, workspaceId, surfaceId)).map(({ key }) => key),
    revokeSurfaceKey: (workspaceId, surfaceId, keyId, now, author) =>
      decideAndCommit(redis, () => decideRevocation(redis, [workspaceId, surfaceId, keyId], now, author)),
    async makerStates(workspaceId, made, now) {
      const ids = new Set(made.flatMap(({ createdBy }) => createdBy?.apiKeyId ?? []))
      const states = [...ids].map(async (id): Promise<[string, MakerState]> => {
        const { key, mayMake } = await findMaker(workspaceId, id)
        const state = key === undefined ? 'removed' : keyState(key, now)
        return [id, state === 'active' && !mayMake ? 'suspended' : state]
      })
      return new Map(await Promise.all(states))
    },
  }
}

async function findByDigest(redis: Redis, digest: string): Promise<SurfaceKey | undefined> {
  const text = await redis.get(keys.credential(digest))
  return text === null ? undefined : parseRecord(keys.credential(digest), text, surfaceKeySchema)
}

async function findStored(
  redis: Redis,
  ...[workspaceId, surfaceId, keyId]: [workspaceId: string, surfaceId: string, keyId: string]
): Promise<StoredKey | undefined> {
  const stored = await loadSurfaceKeys(redis, workspaceId, surfaceId, keyId)
  return stored.find(({ key }) => key.id === keyId)
}

/** Decides how storing a new key would change the current state. */
async function decideKey(redis: Redis, key: SurfaceKey, author: Author | undefined) {
  const surfaceKey = keys.surface(key.workspaceId, key.surfaceId)
  const text = await redis.get(surfaceKey)
  if (text === null) return { result: 'no_surface' as const }
  const ofMaker = await guardMaker(redis, keys.member(key.workspaceId, key.createdBy?.userId ?? ''), author)
  if (ofMaker === undefined) return { result: 'no_member' as const }
  const guards: Guard[] = [['GET', surfaceKey, text], ...ofMaker]
  const removals = await makeRoom(redis, key)
  if (removals === undefined) return { result: 'too_many_keys' as const }
  const logged = writeChange(key.workspaceId, author, { action: 'surface-key.created', subject: key.id })
  const commands = [...writeSurfaceKey(key).commands, ...removals, ...logged]
  return { transaction: { guards, commands }, result: 'created' as const }
}

/** Decides how revoking a key would change the current state. */
async function decideRevocation(
  redis: Redis,
  [workspaceId, surfaceId, keyId]: [workspaceId: string, surfaceId: string, keyId: string],
  now: number,
  author: Author | undefined,
) {
  const stored = await findStored(redis, workspaceId, surfaceId, keyId)
  if (stored === undefined) return { result: 'absent' as const }
  if (stored.key.revokedAt !== null) return { result: 'revoked' as const }
  const { guard, commands } = revocationOf(stored, now)
  const logged = writeChange(workspaceId, author, { action: 'surface-key.revoked', subject: keyId })
  const published = [...commands, ...logged, ...publishChanges([stored.key.digest])]
  return { transaction: { guards: [guard], commands: published }, result: 'revoked' as const }
}

/** Reads the keys of a surface, newest first, or only those whose text contains an id. */
export async function loadSurfaceKeys(
  redis: Redis,
  workspaceId: string,
  surfaceId: string,
  keyId?: string,
): Promise<StoredKey[]> {
  const at = (await redis.smembers(keys.surfaceKeys(workspaceId, surfaceId))).map(keys.credential)
  const texts = at.length === 0 ? [] : await redis.mget(at)
  const found: StoredKey[] = []
  for (const [i, text] of texts.entries()) {
    if (i % RECORDS_PER_TURN === RECORDS_PER_TURN - 1) await nextTurn()
    // Validating thousands of records takes long enough to skip it for all but the one that is needed.
    if (text === null || (keyId !== undefined && !text.includes(JSON.stringify(keyId)))) continue
    const key = parseRecord(at[i] ?? '', text, surfaceKeySchema)
    if (key.workspaceId === workspaceId && key.surfaceId === surfaceId) found.push({ text, key })
  }
  return found.sort((a, b) => newestFirst(a.key, b.key))
}

/**
 * Returns the guard and the commands that revoke a key. A key that is already revoked stays unchanged. The first command
 * frees memory, so that a Redis that is full runs the step (`transaction.ts`).
 */
export function revocationOf({ text, key }: StoredKey, now: number): { guard: Guard; commands: readonly Command[] } {
  const guard: Guard = ['GET', keys.credential(key.digest), text]
  if (key.revokedAt !== null) return { guard, commands: [] }
  const { commands } = writeSurfaceKey({ ...key, revokedAt: new Date(now).toISOString() })
  const frees: Command = ['ZREM', keys.surfaceKeyEnds(key.workspaceId), key.digest]
  return { guard, commands: [frees, ...commands.filter(([name]) => name !== 'PUBLISH')] }
}

/** Returns the commands that remove a key and its indexes. */
export function removalOf({ workspaceId, surfaceId, digest }: SurfaceKey): Command[] {
  return [
    ['DEL', keys.credential(digest)],
    ['SREM', keys.surfaceKeys(workspaceId, surfaceId), digest],
    ['ZREM', keys.surfaceKeyEnds(workspaceId), digest],
  ]
}

/** Returns the command that publishes the change of these keys in one message, or none if there are no keys. */
export function publishChanges(digests: readonly string[]): Command[] {
  return digests.length === 0 ? [] : [['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digests.join(' ')]]
}

/**
 * Returns the commands that make room for a new key, which are none as long as the surface and the workspace have few
 * enough. Returns undefined if there are too many and none of them has ended. Concurrent requests may exceed the limits
 * by their number.
 */
async function makeRoom(
  redis: Redis,
  { workspaceId, surfaceId, createdAt }: SurfaceKey,
): Promise<Command[] | undefined> {
  const now = Date.parse(createdAt)
  const ends = keys.surfaceKeyEnds(workspaceId)
  const [ofSurface, ofWorkspace] = await Promise.all([
    redis.scard(keys.surfaceKeys(workspaceId, surfaceId)),
    redis.zcard(ends),
  ])
  let ended: SurfaceKey[] = []
  if (ofSurface >= SURFACE_KEYS_MAX) {
    const stored = await loadSurfaceKeys(redis, workspaceId, surfaceId)
    ended = stored.map(({ key }) => key).filter(key => keyEnd(key) <= now)
    ended = ended.sort((a, b) => keyEnd(a) - keyEnd(b)).slice(0, REMOVED_AT_ONCE)
    if (ended.length === 0) return undefined
  } else if (ofWorkspace >= WORKSPACE_SURFACE_KEYS_MAX) {
    const digests = await redis.zrangebyscore(ends, '-inf', now, 'LIMIT', 0, REMOVED_AT_ONCE)
    if (digests.length === 0) return undefined
    const texts = await redis.mget(digests.map(keys.credential))
    ended = texts.flatMap((text, i) => (text ? [parseRecord(digests[i] ?? '', text, surfaceKeySchema)] : []))
    // An index may name a key that is gone.
    return [...ended.flatMap(removalOf), ['ZREM', ends, ...digests]]
  }
  return ended.flatMap(removalOf)
}

function changed(key: SurfaceKey, { quotas = key.quotas, allowedOrigins = key.allowedOrigins }: SurfaceKeyChange) {
  const { quotas: _quotas, allowedOrigins: _origins, ...rest } = key
  const hasQuota = quotas !== undefined && Object.values(quotas).some(quota => quota !== undefined)
  return {
    ...rest,
    ...(hasQuota && { quotas }),
    ...(allowedOrigins && { allowedOrigins }),
  }
}

function newestFirst(a: SurfaceKey, b: SurfaceKey): number {
  return Date.parse(b.createdAt) - Date.parse(a.createdAt) || (a.id < b.id ? 1 : -1)
}
