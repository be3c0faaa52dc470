import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type Group, MAX_JOINED_BYTES } from './group.ts'
import type { QueueWriter } from './lane-writers.ts'
import type { CommitSize } from './open-job.ts'
import { ACCEPTED, type CommitOutcome, type Condition, type SmallCommit } from './payload-writer.ts'

/** The least time of a commit, even if its frames waited for slow commits. A client waits this much longer at most. */
const MIN_COMMIT_MS = 100

/** A group that is to be written: its bytes, packed or not, and the priority of its job. */
export interface ClosedGroup {
  readonly group: Group
  readonly payload: Buffer
  readonly priority: number
}

/**
 * Writes a group of a lane: its frames join the payload of the newest job, or make a payload of their own. Resolves when Redis has
 * them on disk. Rejects with a TransientError, at the latest a little after the deadline of the group.
 */
export async function writeGroup(closed: ClosedGroup, writer: QueueWriter): Promise<CommitOutcome> {
  const { commit } = writer
  const { deadline, bytes } = closed.group
  if (!commit.isUsable) await commit.untilUsable(deadline + MIN_COMMIT_MS - performance.now())
  const content = contentOf(closed)
  if (bytes > MAX_JOINED_BYTES) await commit.write(newJobId(), content, timeLeft(deadline, writer))
  else await joinOrCreate(content, closed.group, writer)
  return ACCEPTED
}

/**
 * Writes a group as a payload of its own, in pieces if it is large. A payload with a condition is written before that runs, and
 * deleted again if the condition refuses it, because as an argument of the script it would be copied twice. The job of a refused
 * payload finds nothing and does nothing.
 */
export async function writeAlone(
  closed: ClosedGroup,
  { commit }: QueueWriter,
  timeoutMs: number,
  condition: Condition | undefined,
): Promise<CommitOutcome> {
  const jobId = newJobId()
  const content = contentOf(closed)
  if (closed.group.bytes <= LARGE_FRAME_BYTES) return commit.write(jobId, content, timeoutMs, condition)
  await commit.writePieces(jobId, closed.payload, timeoutMs)
  return commit.write(jobId, { ...content, payload: undefined }, timeoutMs, condition)
}

function contentOf({ group, payload, priority }: ClosedGroup): SmallCommit {
  const { bytes, frames, arrivedAtMs, surfaces } = group
  return { payload, bytes, frames, arrivedAtMs, surfaces, priority }
}

async function joinOrCreate(content: SmallCommit, { deadline, cost }: Group, writer: QueueWriter): Promise<void> {
  const { commit, openJob: job } = writer
  const { priority, bytes, frames } = content
  const size = { bytes, frames, cost }
  const jobId = job.joinable(size, priority)
  try {
    if (jobId !== undefined) {
      if (await commit.join(jobId, content, timeLeft(deadline, writer))) return job.joined(size)
      job.refused()
    }
    await create(content, size, timeLeft(deadline, writer), writer)
  } catch (error) {
    job.close()
    throw error
  }
}

async function create(
  content: SmallCommit,
  size: CommitSize,
  timeoutMs: number,
  { commit, openJob }: QueueWriter,
): Promise<void> {
  const { priority, frames, bytes } = content
  const jobId = newJobId()
  const job = { jobId, priority, data: { payloads: frames, bytes } }
  const due = openJob.takeDue(job)
  try {
    await commit.create(jobId, content, timeoutMs, due)
  } catch (error) {
    if (due !== undefined && due !== job) openJob.add(due)
    throw error
  }
  openJob.created(job, size, due === job)
}

/**
 * Returns the time that a group has. The time since its oldest arrival counts, because the group may have waited for a
 * commit that took nearly as long. Throws a TransientError when the time is up or Redis is unavailable.
 */
function timeLeft(deadline: number, { commit }: QueueWriter): number {
  const latest = deadline + MIN_COMMIT_MS
  const now = performance.now()
  if (now >= latest || !commit.isUsable) throw new TransientError('redis is not connected')
  return Math.min(Math.max(MIN_COMMIT_MS, deadline - now), latest - now)
}
