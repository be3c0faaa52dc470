import type { QueueName } from '../../schemas/queues/names.ts'
import type { HeldJob, Move, NewPayload, PayloadStore } from './payload-store.ts'

export interface FinishJobDeps {
  readonly store: PayloadStore
  /** Adds jobs for payloads that are in Redis already; jobs that exist are left alone. */
  readonly addJobs: (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>
}

/**
 * Ends a job in one step with what it passes on to other queues, whose jobs are added then. False when another worker had
 * ended it, or this very call was sent twice: the jobs are added all the same, since one without a payload does nothing.
 */
export async function finishJob(
  { store, addJobs }: FinishJobDeps,
  { jobId }: HeldJob,
  done: { frames: number; bytes: number },
  moves: readonly Move[],
): Promise<boolean> {
  const finished = await store.finishJob(jobId, done, moves)
  for (const move of moves) await addJobs(move.queue, [move])
  return finished
}
