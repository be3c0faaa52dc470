import { type FindingEntry, findingEntrySchema } from '../../../schemas/records/change.ts'
import { type FindingWork, findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { appendEntries } from '../changes/bounded-log.ts'
import { directoryKeys as keys } from '../record.ts'
import type { Command } from '../transaction.ts'

/** Number of entries that the activity of a finding keeps, the newest. */
export const FINDING_ENTRIES_KEPT = 200

/** Identifies a finding of a workspace. */
export interface FindingOfWorkspace {
  readonly workspaceId: string
  readonly findingId: string
}

/** Returns the record of a finding before a member has worked on it. */
export function untouchedFinding({ workspaceId, findingId }: FindingOfWorkspace, changedAt: string): FindingWork {
  return {
    ...{ version: 1, workspaceId, findingId, status: 'open', statusAt: null, assignee: null },
    ...{ commentBytes: 0, changedAt },
  }
}

/** Returns the text of a record. Its schema has ordered the members, so that equal records have equal texts. */
export function findingWorkText(work: FindingWork): string {
  return JSON.stringify(findingWorkSchema.parse(work))
}

/** Returns the commands that store what members have made of a finding, with its indexes, and add entries to its activity. */
export function writeFindingWork(work: FindingWork, entries: readonly FindingEntry[]): Command[] {
  const { workspaceId, findingId, status, statusAt, until, occurrences, mergedInto, changedAt } = work
  const isResolved = status === 'resolved' && statusAt !== null
  const isIgnored = status === 'ignored'
  return [
    ['HSET', keys.findingWork(workspaceId), findingId, findingWorkText(work)],
    ['ZADD', keys.findingChanges(workspaceId), Date.parse(changedAt), findingId],
    isResolved
      ? ['ZADD', keys.resolvedFindings(workspaceId), Date.parse(statusAt), findingId]
      : ['ZREM', keys.resolvedFindings(workspaceId), findingId],
    isIgnored
      ? ['ZADD', keys.ignoredFindings(workspaceId), until === undefined ? '+inf' : Date.parse(until), findingId]
      : ['ZREM', keys.ignoredFindings(workspaceId), findingId],
    [isIgnored && occurrences !== undefined ? 'SADD' : 'SREM', keys.countedFindings(workspaceId), findingId],
    mergedInto === undefined
      ? ['HDEL', keys.findingMerges(workspaceId), findingId]
      : ['HSET', keys.findingMerges(workspaceId), findingId, mergedInto],
    ...appendEntries(
      keys.findingActivity(workspaceId, findingId),
      entries.map(entry => findingEntrySchema.parse(entry)),
      FINDING_ENTRIES_KEPT,
    ),
  ]
}

/**
 * Returns the commands that store a record with its activity as they were elsewhere. `countedBytes` are the bytes of comments that
 * the record it replaces has; entries that this one had are kept.
 */
export function importFindingWork(
  work: FindingWork,
  activity: readonly FindingEntry[],
  countedBytes: number,
): Command[] {
  const newBytes = work.commentBytes - countedBytes
  const counted: Command[] = newBytes === 0 ? [] : [['INCRBY', keys.findingCommentBytes(work.workspaceId), newBytes]]
  return [...writeFindingWork(work, activity), ...counted]
}

/** Returns the commands that remove everything that members have made of a finding. */
export function removeFindingWork({ workspaceId, findingId, commentBytes }: FindingWork): Command[] {
  return [
    ['HDEL', keys.findingWork(workspaceId), findingId],
    ['ZREM', keys.findingChanges(workspaceId), findingId],
    ['ZREM', keys.resolvedFindings(workspaceId), findingId],
    ['ZREM', keys.ignoredFindings(workspaceId), findingId],
    ['SREM', keys.countedFindings(workspaceId), findingId],
    ['HDEL', keys.findingMerges(workspaceId), findingId],
    ['DEL', keys.findingActivity(workspaceId, findingId)],
    ['DECRBY', keys.findingCommentBytes(workspaceId), commentBytes],
  ]
}
