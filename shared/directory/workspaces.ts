import type { Redis } from 'ioredis'
import type { z } from 'zod'
import {
  type Member,
  memberSchema,
  type Retention,
  type User,
  userSchema,
  type Workspace,
  workspaceSchema,
} from '../../schemas/records/directory.ts'
import { type Author, writeChange } from './changes/change-log.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { walkNames } from './sorted-index.ts'
import { commitIf, decideAndCommit } from './transaction.ts'
import { writeMember, writeUser, writeWorkspace } from './writes.ts'

/** Stores users, workspaces, and the members of workspaces with their roles. Lists are ordered by id. */
export interface WorkspaceRecords {
  putUser(user: User): Promise<void>
  /** Stores a user unless the id exists. */
  createUser(user: User): Promise<'created' | 'exists'>
  user(id: string): Promise<User | undefined>
  users(): AsyncGenerator<User>
  /** Stores a workspace under its id and frees its previous slug. Refuses a slug that belongs to another workspace. */
  putWorkspace(workspace: Workspace): Promise<'stored' | 'slug_taken'>
  workspaceById(id: string): Promise<Workspace | undefined>
  workspaceBySlug(slug: string): Promise<Workspace | undefined>
  /** Replaces how long the data of a workspace is kept. Returns the changed workspace, or undefined if it is unknown. */
  changeRetention(id: string, change: (before: Retention) => Retention, author?: Author): Promise<Workspace | undefined>
  /** Yields all workspaces. Only for operators, never for a client. */
  workspaces(): AsyncGenerator<Workspace>
  putMember(member: Member): Promise<void>
  removeMember(workspaceId: string, userId: string): Promise<'removed' | 'absent'>
  member(workspaceId: string, userId: string): Promise<Member | undefined>
  members(workspaceId: string): AsyncGenerator<Member>
}

/** Creates the part of the directory that stores users, workspaces and members. */
export function createWorkspaceRecords(redis: Redis): WorkspaceRecords {
  const read = <S extends z.ZodType>(key: string, schema: S) => readRecord(redis, key, schema)

  async function* walk<S extends z.ZodType>(
    index: string,
    keyOf: (name: string) => string,
    schema: S,
  ): AsyncGenerator<z.infer<S>> {
    for await (const names of walkNames(redis, index)) {
      const at = names.map(keyOf)
      const texts = await redis.mget(at)
      for (const [i, text] of texts.entries()) if (text !== null) yield parseRecord(at[i] ?? index, text, schema)
    }
  }

  const put = ({ commands }: ReturnType<typeof writeUser>) => commitIf(redis, { guards: [], commands })

  return {
    async putUser(user) {
      await put(writeUser(user))
    },
    async createUser(user) {
      const { key, commands } = writeUser(user)
      return (await commitIf(redis, { guards: [['GET', key, '']], commands })) ? 'created' : 'exists'
    },
    async user(id) {
      const user = await read(keys.user(id), userSchema)
      // Redis keys are UTF-8, in which all lone surrogates look alike, so the id of the record is compared too.
      return user?.id === id ? user : undefined
    },
    users: () => walk(keys.users, keys.user, userSchema),
    putWorkspace(workspace) {
      return decideAndCommit(redis, () => decideWorkspace(redis, workspace))
    },
    workspaceById: id => read(keys.workspace(id), workspaceSchema),
    async workspaceBySlug(slug) {
      const id = await redis.get(keys.slug(slug))
      return id === null ? undefined : read(keys.workspace(id), workspaceSchema)
    },
    changeRetention: (id, change, author) =>
      decideAndCommit<Workspace | undefined>(redis, () => decideRetention(redis, id, change, author)),
    workspaces: () => walk(keys.workspaces, keys.workspace, workspaceSchema),
    async putMember(member) {
      await put(writeMember(member))
    },
    async removeMember(workspaceId, userId) {
      const key = keys.member(workspaceId, userId)
      const index = keys.members(workspaceId)
      const results = await redis.multi().del(key).zrem(index, userId).srem(keys.managers(workspaceId), userId).exec()
      const [deleted, unlisted] = repliesOf(results)
      return deleted === 1 || unlisted === 1 ? 'removed' : 'absent'
    },
    async member(workspaceId, userId) {
      const member = await read(keys.member(workspaceId, userId), memberSchema)
      return member?.userId === userId ? member : undefined
    },
    members: workspaceId => walk(keys.members(workspaceId), userId => keys.member(workspaceId, userId), memberSchema),
  }
}

async function readRecord<S extends z.ZodType>(redis: Redis, key: string, schema: S): Promise<z.infer<S> | undefined> {
  const text = await redis.get(key)
  return text === null ? undefined : parseRecord(key, text, schema)
}

/** Decides how changing the retention of a workspace would change the current state. */
async function decideRetention(
  redis: Redis,
  id: string,
  change: (before: Retention) => Retention,
  author: Author | undefined,
) {
  const key = keys.workspace(id)
  const text = await redis.get(key)
  if (text === null) return { result: undefined }
  const before = parseRecord(key, text, workspaceSchema)
  const workspace = { ...before, retention: change(before.retention ?? {}) }
  const transaction = {
    guards: [['GET', key, text] as const],
    commands: [
      ...writeWorkspace(workspace, before).commands,
      ...writeChange(id, author, { action: 'retention.changed', subject: '' }),
    ],
  }
  return { transaction, result: workspace }
}

/** Decides how storing this workspace would change the current state. */
async function decideWorkspace(redis: Redis, workspace: Workspace) {
  const key = keys.workspace(workspace.id)
  const slugKey = keys.slug(workspace.slug)
  const [text, owner] = await redis.mget(key, slugKey)
  if (owner && owner !== workspace.id) return { result: 'slug_taken' as const }
  const before = text ? parseRecord(key, text, workspaceSchema) : undefined
  return {
    transaction: {
      guards: [['GET', key, text ?? ''] as const, ['GET', slugKey, owner ?? ''] as const],
      commands: writeWorkspace(workspace, before).commands,
    },
    result: 'stored' as const,
  }
}

/** Returns the replies of a MULTI. Throws the error of the first command that failed. */
function repliesOf(results: [Error | null, unknown][] | null): unknown[] {
  const failed = results?.find(([error]) => error !== null)
  if (results === null || failed) throw failed?.[0] ?? new Error('the transaction was discarded')
  return results.map(([, reply]) => reply)
}
