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

/** Keys that are decided on in one step. */
const KEYS_AT_ONCE = 1_000
/** The permission to make keys of surfaces (docs/api/credentials.md#makers). */
const MAKING_PERMISSION = 'org:surfaces:write'

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

/** What a step does with keys of a member. */
interface DecidedKeys {
  readonly guards: Guard[]
  readonly commands: Command[]
  readonly keys: MemberKey[]
  /** Whether the member has more of them, which need another step. */
  readonly hasMore: boolean
}

/**
 * Decides on the keys of a member in the step that adds or removes it, so that none grants anything again when the person is added
 * once more. Public keys stay, because they are on live pages. Keys that cannot be passed, because their new owner is no member
 * any more, are revoked.
 */
export async function decideKeys(
  redis: Redis,
  member: { readonly workspaceId: string; readonly userId: string },
  asked: KeysOutcome,
  author: Author,
): Promise<DecidedKeys> {
  const { workspaceId } = member
  const owner = asked.are === 'passed' ? keys.member(workspaceId, asked.to) : undefined
  const ownerText = owner === undefined ? null : await redis.get(owner)
  const outcome: KeysOutcome = ownerText === null ? { are: 'revoked' } : asked
  const made = await loadMade(redis, member, author.now)
  const api = made.api.slice(0, KEYS_AT_ONCE)
  const secret = made.secret.slice(0, KEYS_AT_ONCE - api.length)
  const owned = owner === undefined ? [] : [['GET', owner, ownerText ?? ''] as const]
  const decided = [
    ...api.map(({ record }) => decideApiKey(record, outcome, author)),
    ...secret.map(({ record }) => decideSecretKey(record, outcome, author)),
  ]
  return {
    guards: [...owned, ...[...api, ...secret].map((stored): Guard => ['GET', stored.at, stored.text])],
    commands: decided.flat(),
    keys: [
      ...api.map(({ record: { id, name } }) => ({ kind: 'api' as const, id, name })),
      ...secret.map(({ record: { id, name, surfaceId } }) => ({ kind: 'secret' as const, id, name, surfaceId })),
    ],
    hasMore: api.length + secret.length < made.api.length + made.secret.length,
  }
}

function decideApiKey(key: WorkspaceKey, outcome: KeysOutcome, author: Author): Command[] {
  const { workspaceId, id: subject, scopes } = key
  const revoked = { ...key, revokedAt: new Date(author.now).toISOString() }
  const passed =
    outcome.are === 'passed'
      ? { ...key, createdBy: outcome.to, scopes: scopes.filter(scope => outcome.permissions.includes(scope)) }
      : undefined
  const action = passed ? 'api-key.passed' : 'api-key.revoked'
  return [...writeWorkspaceKey(passed ?? revoked).commands, ...writeChange(workspaceId, author, { action, subject })]
}

/** A key that an API key has made works only while the owner of that may make keys: it must not work again with another owner. */
function decideSecretKey(key: SurfaceKey, outcome: KeysOutcome, author: Author): Command[] {
  const { workspaceId, id: subject, createdBy } = key
  const apiKeyId = createdBy?.apiKeyId ?? null
  const isPassed = outcome.are === 'passed' && (apiKeyId === null || outcome.permissions.includes(MAKING_PERMISSION))
  const passed = isPassed ? { ...key, createdBy: { userId: outcome.to, apiKeyId } } : undefined
  const action = passed ? 'surface-key.passed' : 'surface-key.revoked'
  return [
    ...writeSurfaceKey(passed ?? { ...key, revokedAt: new Date(author.now).toISOString() }).commands,
    ...writeChange(workspaceId, author, { action, subject }),
  ]
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
