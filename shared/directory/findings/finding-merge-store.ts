import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { FindingEntry } from '../../../schemas/records/change.ts'
import { type FindingWork, findingWorkSchema, MERGED_MAX } from '../../../schemas/records/finding-work.ts'
import type { Author } from '../changes/change-log.ts'
import { planMemberOccasions } from '../occasions.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from '../record.ts'
import { type Command, decideAndCommit, type Guard } from '../transaction.ts'
import {
  activityBytes,
  countActivity,
  type FindingOfWorkspace,
  loadActivity,
  planActivity,
  roomForActivity,
  type StoredActivity,
} from './activity.ts'
import { type FindingMerges, withMerged } from './finding-merges.ts'
import { FINDING_WORK_MAX } from './finding-work-store.ts'
import { untouchedFinding, writeFindingWork } from './write-finding-work.ts'

/** Findings that are merged into another one. None of them is merged yet. */
export interface Merge {
  readonly into: string
  readonly findingIds: readonly string[]
}

/** Stores which findings are merged into others (docs/decisions/037-work-on-findings.md). */
export interface FindingMergeStore {
  /** Returns the merges of a workspace. None of the findings that others are merged into is merged itself. */
  findingMerges(workspaceId: string): Promise<FindingMerges>
  /**
   * Merges findings, in one step, with all that are merged into them. The one that stays has their activity and comments, and its
   * own status. `choose` is called again if somebody else has merged or split findings meanwhile; without a result nothing changes.
   */
  mergeFindings(
    workspaceId: string,
    choose: (merges: FindingMerges) => Promise<Merge | undefined>,
    author: Author,
  ): Promise<'merged' | 'too_many_findings' | 'too_many_merged'>
  /** Makes a merged finding one of its own, which is open. Splitting it again changes nothing, and returns the same. */
  splitFinding(finding: FindingOfWorkspace, from: string, author: Author): Promise<'split' | 'not_merged'>
}

/** Steps that lead from a merged finding to the one that stays. An import alone can make more than one. */
const STEPS_MAX = 10

/** Creates the part of the directory that stores which findings are merged into others. */
export function createFindingMergeStore(redis: Redis): FindingMergeStore {
  const loadMerges = async (workspaceId: string) =>
    flatten(new Map(Object.entries(await redis.hgetall(keys.findingMerges(workspaceId)))))
  /** The guard is read before the merges. */
  const loadGuarded = async (workspaceId: string) => {
    const version = await redis.hget(upkeepKeys.mergeVersions, workspaceId)
    const guard: Guard = ['HGET', upkeepKeys.mergeVersions, version ?? '', workspaceId]
    return { guard, merges: await loadMerges(workspaceId) }
  }
  const loadTexts = (workspaceId: string, ids: readonly string[]) => redis.hmget(keys.findingWork(workspaceId), ...ids)
  return {
    findingMerges: loadMerges,
    mergeFindings(workspaceId, choose, author) {
      return decideAndCommit<'merged' | 'too_many_findings' | 'too_many_merged'>(redis, async () => {
        const { guard, merges } = await loadGuarded(workspaceId)
        const merge = await choose(merges)
        if (merge === undefined || merge.findingIds.length === 0) return { result: 'merged' }
        const { into, findingIds } = merge
        if (withMerged(merges, [into, ...findingIds]).length - 1 > MERGED_MAX) return { result: 'too_many_merged' }
        const ids = [into, ...withMerged(merges, findingIds)]
        const texts = await loadTexts(workspaceId, ids)
        const added = texts.filter(text => text === null).length
        if (added > 0 && (await redis.hlen(keys.findingWork(workspaceId))) + added > FINDING_WORK_MAX) {
          return { result: 'too_many_findings' }
        }
        const works = ids.map((findingId, i) => workOf(texts[i], { workspaceId, findingId }, atOf(author)))
        const guards = [guard, ...guardsOf(workspaceId, [into, ...findingIds], texts)]
        const activities: StoredActivity[] = []
        for (const findingId of [into, ...findingIds])
          activities.push(await loadActivity(redis, { workspaceId, findingId }))
        const room = await roomForActivity(redis, workspaceId)
        const commands = writeMerge(works, { findingIds, activities, room }, author)
        const merged = findingIds.map(id => entryOf(author, 'merged', id))
        const called = await planMemberOccasions(redis, { workspaceId, findingId: into }, merged)
        return { transaction: { guards, commands: [...commands, ...called] }, result: 'merged' }
      })
    },
    splitFinding(finding, from, author) {
      return decideAndCommit<'split' | 'not_merged'>(redis, async () => {
        const { workspaceId, findingId } = finding
        const { guard, merges } = await loadGuarded(workspaceId)
        const into = merges.get(from) ?? from
        const texts = await loadTexts(workspaceId, [into, findingId])
        const [stays, split] = [into, findingId].map((id, i) =>
          workOf(texts[i], { workspaceId, findingId: id }, atOf(author)),
        ) as [FindingWork, FindingWork]
        if (merges.get(findingId) !== into) {
          return { result: !merges.has(findingId) && split.splitFrom === into ? 'split' : 'not_merged' }
        }
        const guards = [guard, ...guardsOf(workspaceId, [into, findingId], texts)]
        const own = await loadActivity(redis, { workspaceId, findingId: into })
        const commands = writeSplit(stays, finding, { own, room: await roomForActivity(redis, workspaceId) }, author)
        const apart = [entryOf(author, 'split_off', findingId)]
        const called = await planMemberOccasions(redis, { workspaceId, findingId: into }, apart)
        return { transaction: { guards, commands: [...commands, ...called] }, result: 'split' }
      })
    },
  }
}

/** Leads each merged finding to the one that stays. Those that lead to themselves are not merged. */
function flatten(direct: FindingMerges): FindingMerges {
  const merges = new Map<string, string>()
  for (const [id, into] of direct) {
    let stays = into
    for (let step = 0; step < STEPS_MAX; step++) stays = direct.get(stays) ?? stays
    if (!direct.has(stays)) merges.set(id, stays)
  }
  return merges
}

function workOf(text: string | null | undefined, finding: FindingOfWorkspace, at: string): FindingWork {
  if (text === null || text === undefined) return untouchedFinding(finding, at)
  return parseRecord('a finding', text, findingWorkSchema)
}

/** Returns the guards of the records of these findings, whose texts come first. */
function guardsOf(workspaceId: string, ids: readonly string[], texts: readonly (string | null)[]): Guard[] {
  return ids.map((id, i) => ['HGET', keys.findingWork(workspaceId), texts[i] ?? '', id])
}

const atOf = ({ now }: Author) => new Date(now).toISOString()
const randomHex = () => randomBytes(10).toString('hex')

function entryOf(author: Author, action: FindingEntry['action'], findingId: string): FindingEntry {
  return { id: `act_${randomHex()}`, createdAt: atOf(author), by: author.by, action, findingId }
}

const changesMerges = (workspaceId: string): Command => [
  ...(['HSET', upkeepKeys.mergeVersions] as const),
  ...[workspaceId, randomHex()],
]

/** The activities of findings that are merged. */
interface MergedActivities {
  readonly findingIds: readonly string[]
  /** Those of the finding that stays, and then of `findingIds`. */
  readonly activities: readonly StoredActivity[]
  readonly room: number
}

/** Returns the commands that merge findings. The first record stays, and those of `findingIds` were not merged before. */
function writeMerge(
  [stays, ...merged]: readonly FindingWork[],
  { findingIds, activities: [own = [], ...others], room }: MergedActivities,
  author: Author,
): Command[] {
  if (stays === undefined) return []
  const { workspaceId, findingId: mergedInto } = stays
  const entries = findingIds.map(findingId => entryOf(author, 'merged', findingId))
  const activity = planActivity(stays, { own, others: others.flat() }, entries, room)
  const at = atOf(author)
  return [
    changesMerges(workspaceId),
    ...activity.commands,
    ...findingIds.map((id): Command => ['DEL', keys.findingActivity(workspaceId, id)]),
    ...countActivity(workspaceId, activity.bytes - activityBytes([...own, ...others.flat()])),
    ...writeFindingWork({ ...stays, activityBytes: activity.bytes, changedAt: at }),
    ...merged.flatMap(work => writeFindingWork({ ...untouchedFinding(work, at), mergedInto })),
  ]
}

/** Returns the commands that make a merged finding one of its own. The comments stay where they are. */
function writeSplit(
  stays: FindingWork,
  finding: FindingOfWorkspace,
  { own, room }: { readonly own: StoredActivity; readonly room: number },
  author: Author,
): Command[] {
  const { workspaceId, findingId: from } = stays
  const at = atOf(author)
  const split: FindingWork = { ...untouchedFinding(finding, at), statusAt: at, splitFrom: from }
  const of = planActivity(stays, { own }, [entryOf(author, 'split_off', finding.findingId)], room)
  const ofSplit = planActivity(finding, { own: [] }, [entryOf(author, 'split', from)], room)
  return [
    changesMerges(workspaceId),
    ...of.commands,
    ...ofSplit.commands,
    ...countActivity(workspaceId, of.bytes - stays.activityBytes + ofSplit.bytes),
    ...writeFindingWork({ ...stays, activityBytes: of.bytes, changedAt: at }),
    ...writeFindingWork({ ...split, activityBytes: ofSplit.bytes }),
  ]
}
