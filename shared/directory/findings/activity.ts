import type { Redis } from 'ioredis'
import { type FindingEntry, findingEntrySchema } from '../../../schemas/records/change.ts'
import { MIB } from '../../../schemas/units.ts'
import { textOf } from '../changes/bounded-log.ts'
import { directoryKeys as keys, parseRecord } from '../record.ts'
import type { Command } from '../transaction.ts'

/** Number of entries that the activity of a finding keeps, the newest. */
export const FINDING_ENTRIES_KEPT = 200
/** Greatest number of UTF-8 bytes of the activity of all findings of a workspace, comments included. */
export const ACTIVITY_BYTES_MAX = 16 * MIB

/** Identifies a finding of a workspace. */
export interface FindingOfWorkspace {
  readonly workspaceId: string
  readonly findingId: string
}

/** An activity as it is stored: the texts of its entries, the oldest first. */
export type StoredActivity = readonly string[]

/** An activity after a step, and the commands that make it so. */
interface PlannedActivity {
  readonly commands: Command[]
  readonly bytes: number
}

/** Reads the activity of a finding. */
export function loadActivity(redis: Redis, { workspaceId, findingId }: FindingOfWorkspace): Promise<string[]> {
  return redis.zrange(keys.findingActivity(workspaceId, findingId), '0', '-1')
}

/** Returns how many bytes the activity of a workspace may still grow by; negative if it has grown beyond. */
export async function roomForActivity(redis: Redis, workspaceId: string): Promise<number> {
  return ACTIVITY_BYTES_MAX - Number(await redis.get(keys.findingActivityBytes(workspaceId)))
}

/** Returns the command that counts the growth of the activity of a workspace. */
export function countActivity(workspaceId: string, bytes: number): Command[] {
  return bytes === 0 ? [] : [['INCRBY', keys.findingActivityBytes(workspaceId), bytes]]
}

/** Returns the UTF-8 bytes of an activity. */
export function activityBytes(activity: StoredActivity): number {
  return activity.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

/**
 * Plans that a finding gets new entries, and those of other findings. The newest FINDING_ENTRIES_KEPT stay; if there is no room in
 * the workspace, the oldest ones make it, so that a change is never refused for its entry.
 */
export function planActivity(
  { workspaceId, findingId }: FindingOfWorkspace,
  { own, others = [] }: { readonly own: StoredActivity; readonly others?: StoredActivity },
  added: readonly FindingEntry[],
  room: number,
): PlannedActivity {
  const key = keys.findingActivity(workspaceId, findingId)
  const texts = added.map(entry => textOf(findingEntrySchema.parse(entry)))
  const before = others.length === 0 ? own : [...new Set([...own, ...others])].sort(byTime(key))
  const all = [...before, ...texts.filter(text => !before.includes(text))]
  const limit = activityBytes(own) + activityBytes(others) + Math.max(room, 0)
  let from = Math.max(all.length - FINDING_ENTRIES_KEPT, 0)
  let bytes = activityBytes(all.slice(from))
  for (; bytes > limit && from < all.length - texts.length; from++) bytes -= Buffer.byteLength(all[from] ?? '')
  const kept = new Set(all.slice(from))
  const gone = own.filter(text => !kept.has(text))
  const present = new Set(own)
  const scored = [...kept].filter(text => !present.has(text)).flatMap(text => [timeOf(key, text), text])
  return {
    commands: [
      ...(gone.length === 0 ? [] : ([['ZREM', key, ...gone]] as const)),
      ...(scored.length === 0 ? [] : ([['ZADD', key, ...scored]] as const)),
    ],
    bytes,
  }
}

function timeOf(key: string, text: string): number {
  return Date.parse(parseRecord(key, text, findingEntrySchema).createdAt)
}

function byTime(key: string): (a: string, b: string) => number {
  return (a, b) => timeOf(key, a) - timeOf(key, b) || (a < b ? -1 : 1)
}
