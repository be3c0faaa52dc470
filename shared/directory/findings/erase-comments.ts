import type { Redis } from 'ioredis'
import { findingEntrySchema } from '../../../schemas/records/change.ts'
import { findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { createCreationStore } from '../creations.ts'
import { directoryKeys as keys, parseRecord } from '../record.ts'
import { type Command, commitIf, decideAndCommit, type Guard } from '../transaction.ts'
import { activityBytes, countActivity, loadActivity } from './activity.ts'
import { mentionsOf, type Naming } from './mentions.ts'
import { writeFindingWork } from './write-finding-work.ts'

/**
 * Removes the comments of a workspace that name a person, and what is remembered of requests that created them. Returns the number
 * of comments. It may be interrupted and repeated.
 */
export async function eraseComments(redis: Redis, workspaceId: string, naming: Naming): Promise<number> {
  const mentions = mentionsOf(naming)
  let erased = 0
  for (const findingId of await redis.zrange(keys.findingChanges(workspaceId), '0', '-1')) {
    erased += await eraseOfFinding(redis, workspaceId, findingId, mentions)
  }
  for await (const { id, answer } of createCreationStore(redis).creations(workspaceId)) {
    if (!hasText(answer, mentions)) continue
    const commands: Command[] = [
      ['DEL', keys.creation(workspaceId, id)],
      ['ZREM', keys.creations(workspaceId), id],
    ]
    await commitIf(redis, { guards: [], commands })
  }
  return erased
}

function eraseOfFinding(
  redis: Redis,
  workspaceId: string,
  findingId: string,
  mentions: (text: string) => boolean,
): Promise<number> {
  const activity = keys.findingActivity(workspaceId, findingId)
  return decideAndCommit(redis, async () => {
    const gone = (await loadActivity(redis, { workspaceId, findingId })).filter(member => {
      const { text } = parseRecord(activity, member, findingEntrySchema)
      return text !== undefined && mentions(text)
    })
    if (gone.length === 0) return { result: 0 }
    const work = await redis.hget(keys.findingWork(workspaceId), findingId)
    const guards: Guard[] = [['HGET', keys.findingWork(workspaceId), work ?? '', findingId]]
    const commands: Command[] = [['ZREM', activity, ...gone]]
    if (work !== null) {
      const before = parseRecord(activity, work, findingWorkSchema)
      const bytes = activityBytes(gone)
      commands.push(...writeFindingWork({ ...before, activityBytes: before.activityBytes - bytes }))
      commands.push(...countActivity(workspaceId, -bytes))
    }
    return { result: gone.length, transaction: { guards, commands } }
  })
}

function hasText(value: unknown, mentions: (text: string) => boolean): boolean {
  if (typeof value === 'string') return mentions(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(part => hasText(part, mentions))
}
