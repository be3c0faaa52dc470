import {
  type Member,
  memberSchema,
  type Surface,
  type SurfaceKey,
  surfaceKeySchema,
  surfaceSchema,
  type User,
  userSchema,
  type Workspace,
  type WorkspaceKey,
  workspaceKeySchema,
  workspaceSchema,
} from '../../schemas/records/directory.ts'
import { CREDENTIAL_CHANGES_CHANNEL, directoryKeys as keys } from './record.ts'
import type { Command } from './transaction.ts'

/** How long the same request of a user for a workspace key is told by its idempotency key (CONTRACT 4.10). */
export const KEY_REQUEST_LIFETIME_MS = 24 * 60 * 60 * 1_000

/** A record where it stands, and everything that is written with it: all in one step. */
export interface RecordWrite {
  readonly key: string
  readonly commands: readonly Command[]
}

export function writeUser(user: User): RecordWrite {
  const key = keys.user(user.id)
  return { key, commands: [set(key, userSchema.parse(user)), ['ZADD', keys.users, 0, user.id]] }
}

/** `before` is the record that this one replaces: its slug is given up. */
export function writeWorkspace(workspace: Workspace, before: Workspace | undefined): RecordWrite {
  const key = keys.workspace(workspace.id)
  const commands: Command[] = [
    set(key, workspaceSchema.parse(workspace)),
    ['SET', keys.slug(workspace.slug), workspace.id],
    ['ZADD', keys.workspaces, 0, workspace.id],
  ]
  if (before && before.slug !== workspace.slug) commands.push(['DEL', keys.slug(before.slug)])
  return { key, commands }
}

export function writeMember(member: Member): RecordWrite {
  const { workspaceId, userId } = member
  const key = keys.member(workspaceId, userId)
  return { key, commands: [set(key, memberSchema.parse(member)), ['ZADD', keys.members(workspaceId), 0, userId]] }
}

export function writeSurface(surface: Surface): RecordWrite {
  const { workspaceId, id, createdAt } = surface
  const key = keys.surface(workspaceId, id)
  return {
    key,
    commands: [
      set(key, surfaceSchema.parse(surface)),
      ['ZADD', keys.surfaces(workspaceId), Date.parse(createdAt), id],
      ['ZADD', keys.surfaceIds(workspaceId), 0, id],
    ],
  }
}

export function writeSurfaceKey(surfaceKey: SurfaceKey): RecordWrite {
  const { workspaceId, surfaceId, digest } = surfaceKey
  const key = keys.credential(digest)
  return {
    key,
    commands: [
      set(key, surfaceKeySchema.parse(surfaceKey)),
      ['SADD', keys.surfaceKeys(workspaceId, surfaceId), digest],
      ['ZADD', keys.surfaceIds(workspaceId), 0, surfaceId],
      ['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digest],
    ],
  }
}

/** `now` (Unix milliseconds) says whether the request that made the key is still to be told by its idempotency key. */
export function writeWorkspaceKey(workspaceKey: WorkspaceKey, now: number): RecordWrite {
  const { workspaceId, id, digest, createdAt, createdBy, idempotencyKey } = workspaceKey
  const key = keys.workspaceCredential(digest)
  const createdAtMs = Date.parse(createdAt)
  const requestLeftMs = createdAtMs + KEY_REQUEST_LIFETIME_MS - now
  const commands: Command[] = [
    set(key, workspaceKeySchema.parse(workspaceKey)),
    ['ZADD', keys.workspaceKeys(workspaceId), createdAtMs, id],
    ['HSET', keys.workspaceKeyDigests(workspaceId), id, digest],
    ['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digest],
  ]
  if (requestLeftMs > 0) {
    commands.push(['SET', keys.keyRequest(workspaceId, idempotencyKey, createdBy), digest, 'PX', requestLeftMs])
  }
  return { key, commands }
}

/** Of a record that its schema has put in its own order: the same record is the same text. */
function set(key: string, record: object): Command {
  return ['SET', key, JSON.stringify(record)]
}
