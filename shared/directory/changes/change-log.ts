import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type Actor, type Change, changeSchema } from '../../../schemas/records/change.ts'
import type { Once } from '../creations.ts'
import { directoryKeys as keys } from '../record.ts'
import type { ListPage } from '../sorted-index.ts'
import { type Command, commitIf } from '../transaction.ts'
import { appendEntries, readEntries } from './bounded-log.ts'

/** Number of changes of a workspace that its log keeps, the newest. */
export const CHANGES_KEPT = 10_000

/** Who makes a change, and when (Unix ms). */
export interface Author {
  readonly by: Actor
  readonly now: number
  /** Given for a creation that its client may repeat. */
  readonly once?: Once | undefined
}

/** A change, without who made it. */
export type ChangeOf = Pick<Change, 'action' | 'subject' | 'name' | 'permissions'>

/** Stores who has changed what in a workspace. */
export interface ChangeLog {
  /** Adds a change of something that is not in the directory. Others are added by the functions that make them. */
  addChange(workspaceId: string, author: Author, change: ChangeOf): Promise<void>
  /** Returns a page of changes, newest first. A page shorter than its limit is the last one. */
  changes(workspaceId: string, page: ListPage): Promise<Change[]>
}

/** Creates the part of the directory that stores changes. */
export function createChangeLog(redis: Redis): ChangeLog {
  return {
    async addChange(workspaceId, author, change) {
      await commitIf(redis, { guards: [], commands: writeChange(workspaceId, author, change) })
    },
    changes: (workspaceId, page) => readEntries<Change>(redis, keys.changes(workspaceId), page, changeSchema),
  }
}

/**
 * Returns the commands that add a change to the log, in the step that makes it. Without an author there are none: imports and
 * processes change nothing that a person has not changed before.
 */
export function writeChange(workspaceId: string, author: Author | undefined, change: ChangeOf): Command[] {
  if (author === undefined) return []
  const id = `chg_${randomBytes(10).toString('hex')}`
  const entry = { id, createdAt: new Date(author.now).toISOString(), by: author.by, ...change }
  return importChanges(workspaceId, [entry])
}

/** Returns the commands that add changes as they were elsewhere. Adding one again changes nothing. */
export function importChanges(workspaceId: string, changes: readonly Change[]): Command[] {
  const entries = changes.map(change => changeSchema.parse(change))
  return appendEntries(keys.changes(workspaceId), entries, CHANGES_KEPT)
}
