import {
  type ManifestPointer,
  type Member,
  memberSchema,
  type ReceiptSecret,
  type Release,
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
import { keyEnd } from '../ids/key-state.ts'
import { CREDENTIAL_CHANGES_CHANNEL, directoryKeys as keys, mapKeys } from './record.ts'
import { releaseKeys } from './release-store.ts'
import type { Command } from './transaction.ts'

/** The Redis key of a record, and the commands that write the record and its indexes in one step. */
export interface RecordWrite {
  readonly key: string
  readonly commands: readonly Command[]
}

/** Returns the commands that store a user. */
export function writeUser(user: User): RecordWrite {
  const key = keys.user(user.id)
  return { key, commands: [set(key, userSchema.parse(user)), ['ZADD', keys.users, 0, user.id]] }
}

/** Returns the commands that store a workspace. `before` is the record that it replaces, whose slug is freed. */
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

/** Returns the commands that store a member of a workspace. */
export function writeMember(member: Member): RecordWrite {
  const { workspaceId, userId } = member
  const key = keys.member(workspaceId, userId)
  const isManager = member.permissions.includes('org:members:write')
  return {
    key,
    commands: [
      set(key, memberSchema.parse(member)),
      ['ZADD', keys.members(workspaceId), 0, userId],
      [isManager ? 'SADD' : 'SREM', keys.managers(workspaceId), userId],
    ],
  }
}

/** Returns the commands that store a surface. */
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

/** Returns the commands that store a key of a surface and publish the change. */
export function writeSurfaceKey(surfaceKey: SurfaceKey): RecordWrite {
  const { workspaceId, surfaceId, digest } = surfaceKey
  const key = keys.credential(digest)
  return {
    key,
    commands: [
      set(key, surfaceKeySchema.parse(surfaceKey)),
      ['SADD', keys.surfaceKeys(workspaceId, surfaceId), digest],
      ['ZADD', keys.surfaceKeyEnds(workspaceId), scoreOf(keyEnd(surfaceKey)), digest],
      ['ZADD', keys.surfaceIds(workspaceId), 0, surfaceId],
      ['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digest],
    ],
  }
}

/** Returns the commands that store a key of a workspace and publish the change. */
export function writeWorkspaceKey(workspaceKey: WorkspaceKey): RecordWrite {
  const { workspaceId, id, digest, createdAt } = workspaceKey
  const key = keys.workspaceCredential(digest)
  return {
    key,
    commands: [
      set(key, workspaceKeySchema.parse(workspaceKey)),
      ['ZADD', keys.workspaceKeys(workspaceId), Date.parse(createdAt), id],
      ['HSET', keys.workspaceKeyDigests(workspaceId), id, digest],
      ['ZADD', keys.workspaceKeyEnds(workspaceId), scoreOf(keyEnd(workspaceKey)), id],
      ['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digest],
    ],
  }
}

/** Returns the commands that store the secret that seals receipt ids. */
export function writeReceiptSecret(secret: ReceiptSecret): RecordWrite {
  return { key: keys.receiptSecret, commands: [set(keys.receiptSecret, secret)] }
}

/** Returns the commands that store a release, without the index of those that have no manifest. */
export function writeRelease(release: Release): RecordWrite {
  const { workspaceId, slug, createdAt } = release
  const key = releaseKeys.release(workspaceId, slug)
  return {
    key,
    commands: [set(key, release), ['ZADD', releaseKeys.releases(workspaceId), Date.parse(createdAt), slug]],
  }
}

/**
 * Returns the commands that store the pointer to the current manifest of a release. Its maps may be on their way to be deleted,
 * so the wait of all unused maps begins again.
 */
export function writePointer(
  { workspaceId, releaseSlug }: { readonly workspaceId: string; readonly releaseSlug: string },
  pointer: ManifestPointer,
): RecordWrite {
  const key = releaseKeys.manifest(workspaceId, releaseSlug)
  return {
    key,
    commands: [
      set(key, pointer),
      ['ZREM', releaseKeys.unfinished(workspaceId), releaseSlug],
      ['UNLINK', mapKeys.unused(workspaceId)],
    ],
  }
}

/** Returns the commands that add maps to the known stored maps of a workspace. */
export function writeStoredMaps(workspaceId: string, sha256s: readonly string[]): RecordWrite {
  const key = releaseKeys.maps(workspaceId)
  return { key, commands: [['SADD', key, ...sha256s.map(sha256 => Buffer.from(sha256, 'hex'))]] }
}

/** Returns the command that stores a record. Its schema has ordered the members, so that equal records have equal texts. */
function set(key: string, record: object): Command {
  return ['SET', key, JSON.stringify(record)]
}

/** Returns a time as Redis reads a score. */
function scoreOf(ms: number): number | string {
  return ms === Number.POSITIVE_INFINITY ? '+inf' : ms
}
