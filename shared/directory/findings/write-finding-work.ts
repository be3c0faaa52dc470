import type { FindingEntry } from '../../../schemas/records/change.ts'
import { type FindingWork, findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { textOf } from '../changes/bounded-log.ts'
import { directoryKeys as keys } from '../record.ts'
import type { Command } from '../transaction.ts'
import { countActivity, type FindingOfWorkspace, planActivity, type StoredActivity } from './activity.ts'

/** Returns the record of a finding before a member has worked on it. */
export function untouchedFinding({ workspaceId, findingId }: FindingOfWorkspace, changedAt: string): FindingWork {
  return {
    ...{ version: 1, workspaceId, findingId, status: 'open', statusAt: null, assignee: null },
    ...{ activityBytes: 0, changedAt },
  }
}

/** Returns the text of a record. Its schema has ordered the members, so that equal records have equal texts. */
export function findingWorkText(work: FindingWork): string {
  return JSON.stringify(findingWorkSchema.parse(work))
}

/** Returns the commands that store what members have made of a finding, with its indexes. Its activity is stored apart. */
export function writeFindingWork(work: FindingWork): Command[] {
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
  ]
}

/**
 * Returns the commands that store a record with its activity as they were elsewhere. Entries that the directory has of the finding
 * are kept; `countedBytes` are theirs.
 */
export function importFindingWork(
  work: FindingWork,
  activity: readonly FindingEntry[],
  own: StoredActivity = [],
  countedBytes = 0,
): Command[] {
  const { commands, bytes } = planActivity(work, { own, others: activity.map(textOf) }, [], Number.POSITIVE_INFINITY)
  const counted = countActivity(work.workspaceId, bytes - countedBytes)
  return [...writeFindingWork({ ...work, activityBytes: bytes }), ...commands, ...counted]
}

/** Returns the commands that remove everything that members have made of a finding. */
export function removeFindingWork({ workspaceId, findingId, activityBytes }: FindingWork): Command[] {
  return [
    ['HDEL', keys.findingWork(workspaceId), findingId],
    ['ZREM', keys.findingChanges(workspaceId), findingId],
    ['ZREM', keys.resolvedFindings(workspaceId), findingId],
    ['ZREM', keys.ignoredFindings(workspaceId), findingId],
    ['SREM', keys.countedFindings(workspaceId), findingId],
    ['HDEL', keys.findingMerges(workspaceId), findingId],
    ['DEL', keys.findingActivity(workspaceId, findingId)],
    ...countActivity(workspaceId, -activityBytes),
  ]
}
