import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { z } from 'zod'
import {
  type Member,
  memberSchema,
  type Surface,
  type SurfaceKey,
  surfaceKeySchema,
  surfaceSchema,
  type Workspace,
  workspaceSchema,
} from '../schemas/control.ts'

/** Published whenever a credential changes; its message is the digest of the key concerned. */
export const CREDENTIAL_CHANGES_CHANNEL = 'penstock:credential-changes'

/** A record in Redis is not what its schema says: a fault of the store, never of the client. */
export class ControlRecordError extends Error {
  override readonly name = 'ControlRecordError'
}

export interface ControlStore {
  putWorkspace(workspace: Workspace): Promise<void>
  workspaceById(id: string): Promise<Workspace | undefined>
  workspaceBySlug(slug: string): Promise<Workspace | undefined>
  putMember(member: Member): Promise<void>
  member(workspaceId: string, userId: string): Promise<Member | undefined>
  putSurface(surface: Surface): Promise<void>
  surface(workspaceId: string, surfaceId: string): Promise<Surface | undefined>
  /** Stores a key and tells every process that caches it. */
  putSurfaceKey(key: SurfaceKey): Promise<void>
  /** By the digest alone: a presented key is what tells the workspace. */
  surfaceKeyByDigest(digest: string): Promise<SurfaceKey | undefined>
}

/** Workspaces, members, surfaces and keys as JSON records in Redis, one key each, named by their workspace. */
export function createControlStore(redis: Redis): ControlStore {
  async function read<S extends z.ZodType>(key: string, schema: S): Promise<z.infer<S> | undefined> {
    const text = await redis.get(key)
    if (text === null) return undefined
    const result = schema.safeParse(JSON.parse(text))
    if (!result.success) throw new ControlRecordError(`${key}: ${result.error.message}`)
    return result.data
  }

  return {
    async putWorkspace(workspace) {
      const record = JSON.stringify(workspaceSchema.parse(workspace))
      await committed(
        redis.multi().set(keys.workspace(workspace.id), record).set(keys.slug(workspace.slug), workspace.id),
      )
    },
    workspaceById: id => read(keys.workspace(id), workspaceSchema),
    async workspaceBySlug(slug) {
      const id = await redis.get(keys.slug(slug))
      return id === null ? undefined : read(keys.workspace(id), workspaceSchema)
    },
    async putMember(member) {
      await redis.set(keys.member(member.workspaceId, member.userId), JSON.stringify(memberSchema.parse(member)))
    },
    member: (workspaceId, userId) => read(keys.member(workspaceId, userId), memberSchema),
    async putSurface(surface) {
      await redis.set(keys.surface(surface.workspaceId, surface.id), JSON.stringify(surfaceSchema.parse(surface)))
    },
    surface: (workspaceId, surfaceId) => read(keys.surface(workspaceId, surfaceId), surfaceSchema),
    async putSurfaceKey(key) {
      const record = JSON.stringify(surfaceKeySchema.parse(key))
      const transaction = redis
        .multi()
        .set(keys.credential(key.digest), record)
        .sadd(keys.surfaceKeys(key.workspaceId, key.surfaceId), key.digest)
        .publish(CREDENTIAL_CHANGES_CHANNEL, key.digest)
      await committed(transaction)
    },
    surfaceKeyByDigest: digest => read(keys.credential(digest), surfaceKeySchema),
  }
}

/** An id like `srf_5f2c…`: 80 random bits in hex behind a prefix that says what it names. */
export function newId(prefix: 'ws' | 'srf' | 'key'): string {
  return `${prefix}_${randomBytes(10).toString('hex')}`
}

const keys = {
  workspace: (id: string) => `penstock:workspace:${id}`,
  slug: (slug: string) => `penstock:workspace-slug:${slug}`,
  member: (workspaceId: string, userId: string) => `penstock:workspace:${workspaceId}:member:${userId}`,
  surface: (workspaceId: string, surfaceId: string) => `penstock:workspace:${workspaceId}:surface:${surfaceId}`,
  surfaceKeys: (workspaceId: string, surfaceId: string) =>
    `penstock:workspace:${workspaceId}:surface:${surfaceId}:keys`,
  credential: (digest: string) => `penstock:credential:${digest}`,
}

/** Runs a transaction and throws what any of its commands answered with an error. */
async function committed(transaction: ReturnType<Redis['multi']>): Promise<void> {
  const results = await transaction.exec()
  const failed = results?.find(([error]) => error !== null)
  if (results === null || failed) throw failed?.[0] ?? new Error('the transaction was discarded')
}
