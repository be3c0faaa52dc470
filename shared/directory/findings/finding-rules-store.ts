import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import {
  type FindingRule,
  type FindingRules,
  findingRulesSchema,
  REVISION_MAX,
} from '../../../schemas/records/finding-rules.ts'
import { type Author, writeChange } from '../changes/change-log.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from '../record.ts'
import { type Command, commitIf, type Decision, decideAndCommit } from '../transaction.ts'

/** Earlier rules that are kept. */
const EARLIER_RULES = 10
const REVISIONS_SINCE_MS = Date.parse('2026-01-01T00:00:00Z')

/** Rules of a workspace before they are stored. */
interface NewFindingRules {
  readonly workspaceId: string
  /** The revision of the rules that they replace; 0 if there are none. */
  readonly revision: number
  readonly rules: readonly FindingRule[]
}

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
  replaceFindingRules(rules: NewFindingRules, author: Author): Promise<FindingRules | number>
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
  return {
    async findingRules(workspaceId) {
      return parse(await redis.get(keys.findingRules(workspaceId)))
    },
    async findingRulesAt(workspaceId, revision) {
      // In this order, rules that are replaced meanwhile are not missed.
      const current = parse(await redis.get(keys.findingRules(workspaceId)))
      if (current?.revision === revision) return current
      const earlier = await redis.lrange(keys.earlierFindingRules(workspaceId), 0, -1)
      return earlier.map(parse).find(rules => rules?.revision === revision)
    },
    async findingRevisions(workspaceIds) {
      if (workspaceIds.length === 0) return []
      const texts = await redis.mget(workspaceIds.map(keys.findingRules))
      return texts.map(text => parse(text)?.revision ?? 0)
    },
    replaceFindingRules: (rules, author) =>
      decideAndCommit<FindingRules | number>(redis, () => decideRules(redis, rules, author)),
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

/** Decides how replacing rules would change the current state. */
async function decideRules(
  redis: Redis,
  { workspaceId, revision, rules }: NewFindingRules,
  author: Author,
): Promise<Decision<FindingRules | number>> {
  const key = keys.findingRules(workspaceId)
  const text = await redis.get(key)
  const stored = parse(text)
  const before = stored?.revision ?? 0
  // A client that repeats its request has not read the new revision.
  if (stored && JSON.stringify(stored.rules) === JSON.stringify(rules)) return { result: stored }
  if (before !== revision) return { result: before }
  const seconds = Math.floor((author.now - REVISIONS_SINCE_MS) / 1_000)
  const record: FindingRules = {
    ...{ version: 1, workspaceId, changedAt: new Date(author.now).toISOString() },
    revision: Math.min(Math.max(before + 1, seconds), REVISION_MAX),
    rules: [...rules],
  }
  const earlier: Command[] =
    text === null
      ? []
      : [
          ['LPUSH', keys.earlierFindingRules(workspaceId), text],
          ['LTRIM', keys.earlierFindingRules(workspaceId), 0, EARLIER_RULES - 1],
        ]
  const logged = writeChange(workspaceId, author, { action: 'finding-rules.changed', subject: '' })
  const commands = [...earlier, ...writeFindingRules(record), ...logged]
  return { transaction: { guards: [['GET', key, text ?? '']], commands }, result: record }
}

function parse(text: string | null): FindingRules | undefined {
  return text === null ? undefined : parseRecord('rules', text, findingRulesSchema)
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
