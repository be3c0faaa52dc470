import type { Redis } from 'ioredis'
import { z } from 'zod'
import { findingEntrySchema } from '../../../schemas/records/change.ts'
import { findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { createCreationStore } from '../creations.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from '../record.ts'
import { type Command, commitIf, decideAndCommit, type Guard } from '../transaction.ts'
import { activityBytes, countActivity, loadActivity } from './activity.ts'
import { mentionsOf, type Naming } from './mentions.ts'
import { writeFindingWork } from './write-finding-work.ts'

/** The responses of which a record of an idempotent request can have something of a person: a comment, and the erasure. */
const answerSchema = z.object({
  entry: z.object({ text: z.string() }).optional(),
  erasure: z.object({ id: z.string() }).optional(),
})

/**
 * Removes the comments of a workspace that name a person, and what is remembered of requests that created them and the erasure.
 * Returns the number of comments. It may be interrupted and repeated. `onStep` runs between two steps.
 */
export async function eraseComments(
  redis: Redis,
  workspaceId: string,
  naming: Naming,
  onStep: () => Promise<void>,
): Promise<number> {
  const mentions = mentionsOf(naming)
  let erased = 0
  // A merge moves comments from a finding that is not searched yet to one that was.
  for (let merges: string | null | undefined; merges !== (await mergesOf(redis, workspaceId)); ) {
    merges = await mergesOf(redis, workspaceId)
    for (const findingId of await redis.zrange(keys.findingChanges(workspaceId), '0', '-1')) {
      await onStep()
      erased += await eraseOfFinding(redis, workspaceId, findingId, mentions)
    }
  }
  for await (const { id, answer } of createCreationStore(redis).creations(workspaceId)) {
    const { entry, erasure } = answerSchema.safeParse(answer).data ?? {}
    if (!(entry ? mentions(entry.text) : erasure && erasure.id === naming.erasureId)) continue
    const commands: Command[] = [
      ['DEL', keys.creation(workspaceId, id)],
      ['ZREM', keys.creations(workspaceId), id],
    ]
    await commitIf(redis, { guards: [], commands })
  }
  return erased
}

async function mergesOf(redis: Redis, workspaceId: string): Promise<string> {
  return (await redis.hget(upkeepKeys.mergeVersions, workspaceId)) ?? ''
}

function eraseOfFinding(
  redis: Redis,
  workspaceId: string,
  findingId: string,
  mentions: (text: string) => boolean,
): Promise<number> {
  const activity = keys.findingActivity(workspaceId, findingId)
  return decideAndCommit(redis, async () => {
    // In this order, an activity that changes meanwhile is read again.
    const work = await redis.hget(keys.findingWork(workspaceId), findingId)
    const gone = (await loadActivity(redis, { workspaceId, findingId })).filter(member => {
      const { text } = parseRecord(activity, member, findingEntrySchema)
      return text !== undefined && mentions(text)
    })
    if (gone.length === 0) return { result: 0 }
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
