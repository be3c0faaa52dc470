import type { Redis } from 'ioredis'
import { type Dropping, droppingSchema } from '../../schemas/records/dropping.ts'
import type { Author } from './changes/change-log.ts'
import { directoryKeys as keys } from './record.ts'
import { createRevisedRules, type NewRules } from './revised-rules.ts'
import type { Command } from './transaction.ts'

/** Stores the rules by which records of workspaces are dropped (docs/api/dropping.md). */
export interface DroppingStore {
  /** Returns the rules of a workspace, or undefined if it never had any. */
  dropping(workspaceId: string): Promise<Dropping | undefined>
  /** Returns the rules that had this revision, if they are the current ones or among the last before them. */
  droppingAt(workspaceId: string, revision: number): Promise<Dropping | undefined>
  /** Replaces the rules. Returns the current revision instead if they have another one than `revision`. */
  replaceDropping(rules: NewRules<Dropping>, author: Author): Promise<Dropping | number>
}

/** Creates the part of the directory that stores rules of dropping. */
export function createDroppingStore(redis: Redis): DroppingStore {
  const rules = createRevisedRules<Dropping>(redis, {
    key: keys.dropping,
    earlierKey: keys.earlierDropping,
    schema: droppingSchema,
    action: 'dropping.changed',
    write: writeDropping,
  })
  return { dropping: rules.current, droppingAt: rules.at, replaceDropping: rules.replace }
}

/** Returns the commands that store rules. */
export function writeDropping(rules: Dropping): Command[] {
  return [['SET', keys.dropping(rules.workspaceId), JSON.stringify(droppingSchema.parse(rules))]]
}
