import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type FindingRules, findingRulesSchema } from '../../../schemas/records/finding-rules.ts'
import type { Author } from '../changes/change-log.ts'
import { directoryKeys as keys, upkeepKeys } from '../record.ts'
import { createRevisedRules, type NewRules } from '../revised-rules.ts'
import { type Command, commitIf } from '../transaction.ts'

/** A workspace whose stored exceptions are to be grouped by its rules. */
export interface UngroupedWorkspace {
  readonly workspaceId: string
  /** Tells this need from a later one. */
  readonly token: string
}

/** Stores the rules by which the exceptions of workspaces are grouped. */
export interface FindingRulesStore {
  /** Returns the rules of a workspace, or undefined if it never had any. */
  findingRules(workspaceId: string): Promise<FindingRules | undefined>
  /** Returns the rules that had this revision, if they are the current ones or among the last before them. */
  findingRulesAt(workspaceId: string, revision: number): Promise<FindingRules | undefined>
  /** Returns the revisions of the rules of workspaces, 0 for one that never had any. */
  findingRevisions(workspaceIds: readonly string[]): Promise<number[]>
  /**
   * Replaces the rules, and notes in the same step that what is stored is to be grouped by them. Returns the current revision
   * instead if they have another one than `revision`. Changes nothing if they are the same already.
   */
  replaceFindingRules(rules: NewRules<FindingRules>, author: Author): Promise<FindingRules | number>
  /** Notes that exceptions may have been stored by earlier rules. */
  groupAgain(workspaceIds: readonly string[]): Promise<void>
  /** Returns whether all that is stored of a workspace is grouped by its rules. */
  isGrouped(workspaceId: string): Promise<boolean>
  /** Returns workspaces whose stored exceptions are to be grouped again. */
  ungrouped(): Promise<UngroupedWorkspace[]>
  /** Notes that all that was stored has been grouped, unless there is a new need. */
  grouped(workspace: UngroupedWorkspace): Promise<void>
}

/** Creates the part of the directory that stores rules of grouping. */
export function createFindingRulesStore(redis: Redis): FindingRulesStore {
  const rules = createRevisedRules<FindingRules>(redis, {
    key: keys.findingRules,
    earlierKey: keys.earlierFindingRules,
    schema: findingRulesSchema,
    action: 'finding-rules.changed',
    write: writeFindingRules,
  })
  return {
    findingRules: rules.current,
    findingRulesAt: rules.at,
    findingRevisions: rules.revisions,
    replaceFindingRules: rules.replace,
    async groupAgain(workspaceIds) {
      if (workspaceIds.length > 0) await redis.hset(upkeepKeys.ungrouped, noteUngrouped(workspaceIds))
    },
    async isGrouped(workspaceId) {
      return (await redis.hexists(upkeepKeys.ungrouped, workspaceId)) === 0
    },
    async ungrouped() {
      const entries = Object.entries(await redis.hgetall(upkeepKeys.ungrouped))
      return entries.map(([workspaceId, token]) => ({ workspaceId, token }))
    },
    async grouped({ workspaceId, token }) {
      const guards = [['HGET', upkeepKeys.ungrouped, token, workspaceId]] as const
      await commitIf(redis, { guards, commands: [['HDEL', upkeepKeys.ungrouped, workspaceId]] })
    },
  }
}

function noteUngrouped(workspaceIds: readonly string[]): Record<string, string> {
  return Object.fromEntries(workspaceIds.map(id => [id, randomUUID()]))
}

/** Returns the commands that store rules, the record first, and note that what is stored is to be grouped by them. */
export function writeFindingRules(rules: FindingRules): Command[] {
  const { workspaceId } = rules
  return [
    ['SET', keys.findingRules(workspaceId), JSON.stringify(findingRulesSchema.parse(rules))],
    ['HSET', upkeepKeys.ungrouped, workspaceId, randomUUID()],
  ]
}
