import { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import { OWNER_BYTES, ownerOfPayload } from '../../shared/queue/payload-frame.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

/**
 * Jobs that a pool takes at the same time. Most of them wait, so that the pool can choose among workspaces: the queue
 * itself is in the order of arrival.
 */
export const HELD_JOBS = 128
/** Jobs of one workspace among them. Further ones return to the queue for a while. */
const HELD_PER_WORKSPACE = 16

/**
 * Lets workspaces take turns with their jobs, one at a time each. So a workspace with a thousand jobs, each of which takes a
 * minute, takes one place of the pool. A job belongs to the workspace of its first request. A job that waits is not in memory.
 *
 * The returned function runs the task of a job when it is the turn of its workspace. It throws a TransientError if the
 * workspace has too many jobs here or the pool is closing (`isClosing`: jobs that wait are left to the next worker), and what the
 * task throws.
 */
export function createWorkspaceTurns(isClosing: () => boolean, concurrency: number) {
  const slots = new FairSlots({ slots: concurrency, perOwner: 1 })
  return async (queue: RedisQueue, jobId: string, task: () => Promise<void>): Promise<void> => {
    const { redis, keys } = queue
    const owner = ownerOfPayload(await redis.getrangeBuffer(keys.payload(jobId), 0, OWNER_BYTES - 1))
    // A job without a payload was finished before, and does nothing.
    const workspaceId = owner?.workspaceId ?? ''
    if (slots.tasksOf(workspaceId) >= HELD_PER_WORKSPACE) {
      throw new TransientError('the workspace has other jobs of the queue in progress')
    }
    await slots.run(workspaceId, async () => {
      if (isClosing()) throw new TransientError('stopped before its turn', { code: 'PENSTOCK_STOPPING' })
      await task()
    })
  }
}
