import type { Redis } from 'ioredis'
import { type FindingOccasion, type Occasion, occasionSchema } from '../../schemas/records/alerts.ts'
import type { FindingEntry } from '../../schemas/records/change.ts'
import { pagesOf } from '../concurrency/pages.ts'
import { occasionId } from '../ids/occasion-id.ts'
import type { FindingOfWorkspace } from './findings/activity.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from './record.ts'
import { type Command, commitIf } from './transaction.ts'

/** Most occasions that wait. Beyond, the oldest are lost: nothing has read them for days. */
const OCCASIONS_MAX = 100_000
/** Occasions of a command. A script of Redis cannot run one with 8,000 words. */
const WORDS_AT_ONCE = 500

/** Returns the commands that add occasions, behind those that wait. */
export function writeOccasions(occasions: readonly Occasion[]): Command[] {
  if (occasions.length === 0) return []
  const texts = occasions.map(occasion => JSON.stringify(occasionSchema.parse(occasion)))
  return [
    ...[...pagesOf(texts, WORDS_AT_ONCE)].map((some): Command => ['RPUSH', upkeepKeys.occasions, ...some]),
    ['LTRIM', upkeepKeys.occasions, -OCCASIONS_MAX, -1],
  ]
}

/** Returns the commands that add what members did with a finding as occasions, if the workspace has receivers. */
export async function planMemberOccasions(
  redis: Redis,
  finding: FindingOfWorkspace,
  entries: readonly FindingEntry[],
): Promise<Command[]> {
  if (entries.length === 0 || (await redis.sismember(keys.alerting, finding.workspaceId)) === 0) return []
  return writeOccasions(entries.map(entry => memberOccasion(finding, entry)))
}

/** Returns the occasion of what a member did with a finding. */
export function memberOccasion({ workspaceId, findingId }: FindingOfWorkspace, entry: FindingEntry): FindingOccasion {
  const kind = entry.action === 'commented' ? 'finding.commented' : 'finding.changed'
  const id = occasionId([workspaceId, findingId, kind, entry.id])
  return { id, kind, workspaceId, findingId, at: entry.createdAt, entry }
}

/** An occasion that waits, and the text by which it is removed. */
export interface WaitingOccasion {
  readonly occasion: Occasion
  readonly text: string
}

/**
 * Returns the occasions that have waited longest. They are the same until they are removed, however many are added meanwhile: the
 * ids of messages about several depend on all of them. One process is elected to use it.
 */
export async function waitingOccasions(redis: Redis, limit: number): Promise<WaitingOccasion[]> {
  const { occasions, occasionsPage } = upkeepKeys
  const begun = Number((await redis.get(occasionsPage)) ?? 0)
  const texts = await redis.lrange(occasions, 0, (begun || limit) - 1)
  // An erasure may have removed some of them.
  if (texts.length !== begun) await redis.set(occasionsPage, texts.length)
  return texts.map(text => ({ text, occasion: parseRecord(occasions, text, occasionSchema) }))
}

/** Removes occasions whose deliveries are queued, and runs commands in the same step. */
export async function removeOccasions(
  redis: Redis,
  occasions: readonly WaitingOccasion[],
  commands: readonly Command[] = [],
): Promise<void> {
  const removals = occasions.map(({ text }): Command => ['LREM', upkeepKeys.occasions, 1, text])
  await commitIf(redis, { guards: [], commands: [...removals, ['DEL', upkeepKeys.occasionsPage], ...commands] })
}
