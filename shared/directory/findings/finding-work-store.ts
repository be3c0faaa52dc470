import type { Redis } from 'ioredis'
import { type FindingEntry, findingEntrySchema } from '../../../schemas/records/change.ts'
import { type FindingWork, findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { readEntries } from '../changes/bounded-log.ts'
import { decideOnce, type Once } from '../creations.ts'
import { planMemberOccasions } from '../occasions.ts'
import { directoryKeys as keys, parseRecord } from '../record.ts'
import type { ListPage } from '../sorted-index.ts'
import { type Command, commitIf, type Guard } from '../transaction.ts'
import {
  countActivity,
  type FindingOfWorkspace,
  loadActivity,
  planActivity,
  roomForActivity,
  type StoredActivity,
} from './activity.ts'
import { removeFindingWork, untouchedFinding, writeFindingWork } from './write-finding-work.ts'

/** Greatest number of findings of a workspace that members have worked on. Concurrent requests may exceed it by their number. */
export const FINDING_WORK_MAX = 10_000
/** Number of records that one transaction removes. */
const REMOVED_AT_ONCE = 100

/** A finding, and the time in Unix ms that its index has. */
interface TimedFinding {
  readonly findingId: string
  readonly atMs: number
}

/** What a change makes of a finding, with its entry in the activity. */
interface ChangedWork {
  readonly work: FindingWork
  readonly entries: readonly FindingEntry[]
}

/** Stores what members have made of findings: status, assignee and comments. */
export interface FindingWorkStore {
  /** Returns the records of these findings, in their order; undefined for a finding without work. */
  findingWork(workspaceId: string, findingIds: readonly string[]): Promise<(FindingWork | undefined)[]>
  /**
   * Changes a finding at a time and adds the entries to its activity, in one step. `change` is called again with the newer record
   * if somebody else has changed the finding meanwhile, so that no change is lost. Without a result, nothing changes. A finding
   * that was merged meanwhile is changed where it is now. Refuses beyond the bounds. `once` is given for a change that its client
   * may repeat.
   */
  changeFinding(
    finding: FindingOfWorkspace,
    at: string,
    change: (before: FindingWork, activity: StoredActivity) => ChangedWork | undefined,
    once?: Once,
  ): Promise<FindingWork | 'too_many_findings' | 'too_many_comments'>
  /** Returns the findings that are stored as resolved, with the time of their resolution. */
  resolvedFindings(workspaceId: string): Promise<TimedFinding[]>
  /** Returns the findings that are ignored at this time, also those that have occurred often enough to be open. */
  ignoredFindings(workspaceId: string, nowMs: number): Promise<string[]>
  /** Returns the findings that are ignored until they have occurred a number of times. */
  countedFindings(workspaceId: string): Promise<string[]>
  /** Returns a page of what was done with a finding, newest first. A page shorter than its limit is the last one. */
  findingActivity(finding: FindingOfWorkspace, page: ListPage): Promise<FindingEntry[]>
  /** Returns the findings whose last change is the longest ago. */
  longestUnchanged(workspaceId: string, limit: number): Promise<string[]>
  /** Removes the records of these findings, unless they change at the same time. */
  forgetFindings(workspaceId: string, findingIds: readonly string[]): Promise<void>
  /** Yields all records of a workspace, in the order of their ids. */
  allFindingWork(workspaceId: string): AsyncGenerator<FindingWork>
}

/** Creates the part of the directory that stores what members have made of findings. */
export function createFindingWorkStore(redis: Redis): FindingWorkStore {
  const loadTexts = (workspaceId: string, ids: readonly string[]) =>
    ids.length === 0 ? [] : redis.hmget(keys.findingWork(workspaceId), ...ids)
  const parse = (text: string | null) => (text === null ? undefined : parseRecord('a finding', text, findingWorkSchema))

  return {
    async findingWork(workspaceId, findingIds) {
      return (await loadTexts(workspaceId, findingIds)).map(parse)
    },
    changeFinding({ workspaceId, findingId: asked }, at, change, once) {
      const key = keys.findingWork(workspaceId)
      return decideOnce<FindingWork | 'too_many_findings' | 'too_many_comments'>(redis, once, async () => {
        const findingId = (await redis.hget(keys.findingMerges(workspaceId), asked)) ?? asked
        const [text = null] = await loadTexts(workspaceId, [findingId])
        if (text === null && (await redis.hlen(key)) >= FINDING_WORK_MAX) return { result: 'too_many_findings' }
        const before = parse(text) ?? untouchedFinding({ workspaceId, findingId }, at)
        const own = await loadActivity(redis, before)
        const planned = await planChange(redis, before, own, change({ ...before, changedAt: at }, own))
        if (planned === undefined) return { result: before }
        if (planned === 'too_many_comments') return { result: planned }
        const guards: Guard[] = [['HGET', key, text ?? '', findingId]]
        return { transaction: { guards, commands: planned.commands }, result: planned.work }
      })
    },
    async resolvedFindings(workspaceId) {
      const words = await redis.zrange(keys.resolvedFindings(workspaceId), '0', '-1', 'WITHSCORES')
      const found: TimedFinding[] = []
      for (let i = 0; i < words.length; i += 2) found.push({ findingId: words[i] ?? '', atMs: Number(words[i + 1]) })
      return found
    },
    ignoredFindings: (workspaceId, nowMs) =>
      redis.zrangebyscore(keys.ignoredFindings(workspaceId), `(${nowMs}`, '+inf'),
    countedFindings: workspaceId => redis.smembers(keys.countedFindings(workspaceId)),
    findingActivity: ({ workspaceId, findingId }, page) =>
      readEntries<FindingEntry>(redis, keys.findingActivity(workspaceId, findingId), page, findingEntrySchema),
    longestUnchanged: (workspaceId, limit) => redis.zrange(keys.findingChanges(workspaceId), '0', String(limit - 1)),
    async forgetFindings(workspaceId, findingIds) {
      for (let at = 0; at < findingIds.length; at += REMOVED_AT_ONCE) {
        const ids = findingIds.slice(at, at + REMOVED_AT_ONCE)
        const texts = await loadTexts(workspaceId, ids)
        const guards = texts.map((text, i): Guard => ['HGET', keys.findingWork(workspaceId), text ?? '', ids[i] ?? ''])
        const commands = texts.map(parse).flatMap(work => (work ? removeFindingWork(work) : []))
        if (commands.length > 0) await commitIf(redis, { guards, commands })
      }
    },
    async *allFindingWork(workspaceId) {
      const ids = (await redis.zrange(keys.findingChanges(workspaceId), '0', '-1')).sort()
      for (let at = 0; at < ids.length; at += REMOVED_AT_ONCE) {
        const texts = await loadTexts(workspaceId, ids.slice(at, at + REMOVED_AT_ONCE))
        for (const work of texts.map(parse)) if (work) yield work
      }
    },
  }
}

/** Returns the record that a change leads to, and the commands that store it. Returns undefined if nothing changes. */
async function planChange(
  redis: Redis,
  before: FindingWork,
  own: StoredActivity,
  changed: ChangedWork | undefined,
): Promise<{ readonly work: FindingWork; readonly commands: Command[] } | 'too_many_comments' | undefined> {
  if (changed === undefined) return undefined
  const { entries } = changed
  const room = await roomForActivity(redis, before.workspaceId)
  const isComment = entries.some(entry => entry.text !== undefined)
  if (isComment && Buffer.byteLength(JSON.stringify(entries)) > room) return 'too_many_comments'
  const { commands, bytes } = planActivity(before, { own }, entries, room)
  const work = { ...changed.work, activityBytes: bytes }
  const counted = countActivity(before.workspaceId, bytes - before.activityBytes)
  const called = await planMemberOccasions(redis, before, entries)
  return { work, commands: [...writeFindingWork(work), ...commands, ...counted, ...called] }
}
