import type { Redis } from 'ioredis'
import {
  type Permission,
  type SurfaceKey,
  surfaceKeySchema,
  type WorkspaceKey,
  workspaceKeySchema,
} from '../../../schemas/records/directory.ts'
import { pagesOf } from '../../concurrency/pages.ts'
import { type Author, writeChange } from '../changes/change-log.ts'
import { directoryKeys as keys, parseRecord } from '../record.ts'
import type { Command, Guard } from '../transaction.ts'
import { writeSurfaceKey, writeWorkspaceKey } from '../writes.ts'

/** Greatest number of keys that a member may have made when it is removed. */
export const MEMBER_KEYS_MAX = 1_000
const KEYS_AT_ONCE = 1_000

/** A key that a member has made and that is neither revoked nor expired: an API key, or a secret key of a surface. */
export interface MemberKey {
  readonly kind: 'api' | 'secret'
  readonly id: string
  readonly name?: string | undefined
  /** Absent for an API key. */
  readonly surfaceId?: string
}

/** A record with the key of Redis that it is stored at, and its exact text. */
interface Stored<T> {
  readonly at: string
  readonly text: string
  readonly record: T
}

/** The keys of a member as they are stored. */
interface MadeKeys {
  readonly api: readonly Stored<WorkspaceKey>[]
  readonly secret: readonly Stored<SurfaceKey>[]
}

/** Outcome for the keys of a member. */
export type KeysOutcome =
  | { readonly are: 'revoked' }
  /** They belong to another member, and grant at most what the member had. */
  | { readonly are: 'passed'; readonly to: string; readonly permissions: readonly Permission[] }

/**
 * Decides on all keys of a member in the step that adds or removes it, so that none grants anything again when the person is added
 * once more. Public keys stay, because they are on live pages. Returns undefined if the member has more than MEMBER_KEYS_MAX.
 */
export async function decideKeys(
  redis: Redis,
  member: { readonly workspaceId: string; readonly userId: string },
  outcome: KeysOutcome,
  author: Author,
): Promise<{ guards: Guard[]; commands: Command[]; keys: MemberKey[] } | undefined> {
  const { api, secret } = await loadMade(redis, member, author.now)
  if (api.length + secret.length > MEMBER_KEYS_MAX) return undefined
  const at = new Date(author.now).toISOString()
  const log = (
    action: 'api-key.passed' | 'api-key.revoked' | 'surface-key.passed' | 'surface-key.revoked',
    id: string,
  ) => writeChange(member.workspaceId, author, { action, subject: id })
  const isPassed = outcome.are === 'passed'
  return {
    guards: [...api, ...secret].map((stored): Guard => ['GET', stored.at, stored.text]),
    commands: [
      ...api.flatMap(({ record }) => [
        ...writeWorkspaceKey(isPassed ? passedApiKey(record, outcome) : { ...record, revokedAt: at }).commands,
        ...log(isPassed ? 'api-key.passed' : 'api-key.revoked', record.id),
      ]),
      ...secret.flatMap(({ record }) => [
        ...writeSurfaceKey(isPassed ? passedSecretKey(record, outcome) : { ...record, revokedAt: at }).commands,
        ...log(isPassed ? 'surface-key.passed' : 'surface-key.revoked', record.id),
      ]),
    ],
    keys: [
      ...api.map(({ record: { id, name } }) => ({ kind: 'api' as const, id, name })),
      ...secret.map(({ record: { id, name, surfaceId } }) => ({ kind: 'secret' as const, id, name, surfaceId })),
    ],
  }
}

type Passed = Extract<KeysOutcome, { are: 'passed' }>

function passedApiKey(key: WorkspaceKey, { to, permissions }: Passed): WorkspaceKey {
  return { ...key, createdBy: to, scopes: key.scopes.filter(scope => permissions.includes(scope)) }
}

function passedSecretKey(key: SurfaceKey, { to }: Passed): SurfaceKey {
  return { ...key, createdBy: { userId: to, apiKeyId: key.createdBy?.apiKeyId ?? null } }
}

/** Reads the keys that a member has made and that have not ended. */
async function loadMade(
  redis: Redis,
  { workspaceId, userId }: { readonly workspaceId: string; readonly userId: string },
  nowMs: number,
): Promise<MadeKeys> {
  const ids = await redis.zrangebyscore(keys.workspaceKeyEnds(workspaceId), `(${nowMs}`, '+inf')
  const ofWorkspace = ids.length === 0 ? [] : await redis.hmget(keys.workspaceKeyDigests(workspaceId), ...ids)
  const ofSurfaces = await redis.zrangebyscore(keys.surfaceKeyEnds(workspaceId), `(${nowMs}`, '+inf')
  const api: Stored<WorkspaceKey>[] = []
  for await (const { at, text } of textsAt(
    redis,
    ofWorkspace.map(digest => keys.workspaceCredential(digest ?? '')),
    userId,
  )) {
    const record = parseRecord(at, text, workspaceKeySchema)
    if (record.createdBy === userId && record.workspaceId === workspaceId) api.push({ at, text, record })
  }
  const secret: Stored<SurfaceKey>[] = []
  for await (const { at, text } of textsAt(redis, ofSurfaces.map(keys.credential), userId)) {
    const record = parseRecord(at, text, surfaceKeySchema)
    const isMade = record.createdBy?.userId === userId && record.kind === 'secret'
    if (isMade && record.workspaceId === workspaceId) secret.push({ at, text, record })
  }
  return { api, secret }
}

/** Yields the texts that contain a text as JSON, because validating tens of thousands of records would take long. */
async function* textsAt(redis: Redis, at: readonly string[], contained: string) {
  const json = JSON.stringify(contained)
  for (const page of pagesOf(at, KEYS_AT_ONCE)) {
    const texts = await redis.mget([...page])
    for (const [i, text] of texts.entries()) if (text?.includes(json)) yield { at: page[i] ?? '', text }
  }
}
