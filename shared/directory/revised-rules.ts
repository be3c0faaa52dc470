import type { Redis } from 'ioredis'
import type { z } from 'zod'
import { REVISION_MAX } from '../../schemas/records/finding-rules.ts'
import { type Author, type ChangeOf, writeChange } from './changes/change-log.ts'
import { parseRecord } from './record.ts'
import { type Command, type Decision, decideAndCommit } from './transaction.ts'

/** Earlier rules that are kept. */
const EARLIER_RULES = 10
const REVISIONS_SINCE_MS = Date.parse('2026-01-01T00:00:00Z')

/** A record of rules that has a revision. */
interface RevisedRecord {
  readonly version: 1
  readonly workspaceId: string
  readonly revision: number
  readonly changedAt: string
  readonly rules: readonly unknown[]
}

/** Rules of a workspace, and what its record has beside them, before they are stored. */
export type NewRules<T extends RevisedRecord> = Omit<T, 'version' | 'changedAt'>

/** A kind of rules: where they are, and what storing them does besides. */
interface RulesKind<T extends RevisedRecord> {
  readonly key: (workspaceId: string) => string
  /** Key of the list of the last records before the current one, the latest first. */
  readonly earlierKey: (workspaceId: string) => string
  readonly schema: z.ZodType<T>
  readonly action: ChangeOf['action']
  readonly write: (record: T) => readonly Command[]
}

/** Stores rules of workspaces, with a revision that grows with each change. */
interface RevisedRules<T extends RevisedRecord> {
  /** Returns the rules of a workspace, or undefined if it never had any. */
  current(workspaceId: string): Promise<T | undefined>
  /** Returns the rules that had this revision, if they are the current ones or among the last before them. */
  at(workspaceId: string, revision: number): Promise<T | undefined>
  /** Returns the revisions of the rules of workspaces, 0 for one that never had any. */
  revisions(workspaceIds: readonly string[]): Promise<number[]>
  /**
   * Replaces the rules, whose `revision` is that of those that they replace, 0 if there are none. Returns the current revision
   * instead if it is another one. Changes nothing if they are the same already.
   */
  replace(rules: NewRules<T>, author: Author): Promise<T | number>
}

/** Creates the part of the directory that stores a kind of rules. */
export function createRevisedRules<T extends RevisedRecord>(redis: Redis, kind: RulesKind<T>): RevisedRules<T> {
  const parse = (text: string | null) => (text === null ? undefined : parseRecord('rules', text, kind.schema))
  return {
    async current(workspaceId) {
      return parse(await redis.get(kind.key(workspaceId)))
    },
    async at(workspaceId, revision) {
      // In this order, rules that are replaced meanwhile are not missed.
      const current = parse(await redis.get(kind.key(workspaceId)))
      if (current?.revision === revision) return current
      const earlier = await redis.lrange(kind.earlierKey(workspaceId), 0, -1)
      return earlier.map(parse).find(rules => rules?.revision === revision)
    },
    async revisions(workspaceIds) {
      if (workspaceIds.length === 0) return []
      const texts = await redis.mget(workspaceIds.map(kind.key))
      return texts.map(text => parse(text)?.revision ?? 0)
    },
    replace: (rules, author) => decideAndCommit<T | number>(redis, () => decideRules(redis, kind, rules, author)),
  }
}

/** Decides how replacing rules would change the current state. */
async function decideRules<T extends RevisedRecord>(
  redis: Redis,
  { key: keyOf, earlierKey, schema, action, write }: RulesKind<T>,
  { workspaceId, revision, ...content }: NewRules<T>,
  author: Author,
): Promise<Decision<T | number>> {
  const key = keyOf(workspaceId)
  const text = await redis.get(key)
  const stored = text === null ? undefined : parseRecord('rules', text, schema)
  const before = stored?.revision ?? 0
  // A client that repeats its request has not read the new revision.
  if (stored && JSON.stringify({ ...stored, ...content }) === text) return { result: stored }
  if (before !== revision) return { result: before }
  const seconds = Math.floor((author.now - REVISIONS_SINCE_MS) / 1_000)
  const record = schema.parse({
    ...{ version: 1, workspaceId, changedAt: new Date(author.now).toISOString() },
    revision: Math.min(Math.max(before + 1, seconds), REVISION_MAX),
    ...content,
  })
  const earlier: Command[] =
    text === null
      ? []
      : [
          ['LPUSH', earlierKey(workspaceId), text],
          ['LTRIM', earlierKey(workspaceId), 0, EARLIER_RULES - 1],
        ]
  const logged = writeChange(workspaceId, author, { action, subject: '' })
  const commands = [...earlier, ...write(record), ...logged]
  return { transaction: { guards: [['GET', key, text ?? '']], commands }, result: record }
}
