import type { Redis } from 'ioredis'
import { type Occasion, occasionSchema } from '../../schemas/records/alerts.ts'
import type { FindingEntry } from '../../schemas/records/change.ts'
import { occasionId } from '../ids/occasion-id.ts'
import type { FindingOfWorkspace } from './findings/activity.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from './record.ts'
import type { Command } from './transaction.ts'

/** Most occasions that wait. Beyond, the oldest are lost: nothing has read them for days. */
const OCCASIONS_MAX = 100_000

/** Returns the commands that add occasions, behind those that wait. */
export function writeOccasions(occasions: readonly Occasion[]): Command[] {
  if (occasions.length === 0) return []
  const texts = occasions.map(occasion => JSON.stringify(occasionSchema.parse(occasion)))
  return [
    ['RPUSH', upkeepKeys.occasions, ...texts],
    ['LTRIM', upkeepKeys.occasions, -OCCASIONS_MAX, -1],
  ]
}

/** Returns the commands that add what members did with a finding as occasions, if the workspace has receivers. */
export async function planMemberOccasions(
  redis: Redis,
  { workspaceId, findingId }: FindingOfWorkspace,
  entries: readonly FindingEntry[],
): Promise<Command[]> {
  if (entries.length === 0 || (await redis.sismember(keys.alerting, workspaceId)) === 0) return []
  return writeOccasions(
    entries.map(entry => {
      const kind = entry.action === 'commented' ? 'finding.commented' : 'finding.changed'
      const id = occasionId([workspaceId, findingId, kind, entry.id])
      return { id, kind, workspaceId, findingId, at: entry.createdAt, entry }
    }),
  )
}

/** An occasion that waits, and the text by which it is removed. */
export interface WaitingOccasion {
  readonly occasion: Occasion
  readonly text: string
}

/** Returns the occasions that have waited longest. */
export async function waitingOccasions(redis: Redis, limit: number): Promise<WaitingOccasion[]> {
  const texts = await redis.lrange(upkeepKeys.occasions, 0, limit - 1)
  return texts.map(text => ({ text, occasion: parseRecord(upkeepKeys.occasions, text, occasionSchema) }))
}

/** Removes occasions whose deliveries are queued. */
export async function removeOccasions(redis: Redis, occasions: readonly WaitingOccasion[]): Promise<void> {
  const removals = redis.multi()
  for (const { text } of occasions) removals.lrem(upkeepKeys.occasions, 1, text)
  await removals.exec()
}
