import type { Budget } from '../../shared/concurrency/budget.ts'
import type { RetryDeps } from '../../shared/concurrency/retry.ts'
import { retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { decodePayload, encodePayload, type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { deadLetterPayload, type RefusedFrame } from '../batch/open-batch.ts'
import { type FinishJobDeps, finishJob } from '../queue/finish-job.ts'
import type { HeldJob, Move } from '../queue/payload-store.ts'
import { type SettledRequest, settleRefused, settleRequests } from '../rows/settle-requests.ts'
import { type StoreChunkDeps, type StoredChunk, storeChunk } from './store-chunk.ts'

/** Chunks of one job that are on their way to the object store at once; a job is 4 MiB of them, or one larger. */
const CONCURRENT_CHUNKS = 4

/** What became of the chunks of one job. */
export interface ReplayJobStats {
  readonly frames: number
  readonly deadLettered: number
  /** `stored`, `repeated`, or the label of a refusal. */
  readonly outcomes: ReadonlyMap<string, number>
  readonly storedBytes: number
}

export interface StoreReplayDeps extends Pick<StoreChunkDeps, 'objects'>, Omit<RetryDeps, 'holdsLock'>, FinishJobDeps {
  /** Payload bytes that the pool holds at once. */
  readonly held: Budget
  /** Adds jobs for payloads that are in Redis already; jobs that exist are left alone. */
  readonly onStored?: (stats: ReplayJobStats) => void
}

/**
 * Stores the chunks of a job as objects, then moves in one step the rows of their index to the queue `replay-chunks` and
 * what was refused to the dead letters. A worker that dies before that step leaves the job to the next, which finds its
 * own objects; after it, the moved payloads get their jobs from the sweeper. So an object has one row, whatever happens.
 */
export async function storeReplay(deps: StoreReplayDeps, job: HeldJob, payloadBytes: number): Promise<void> {
  const { store } = deps
  const release = await deps.held.acquire(payloadBytes)
  try {
    const { payload } = await store.look(job.jobId)
    if (payload === null) return
    const frames = decodePayload(payload)
    const results = await storeChunks(deps, job, frames)
    const moves = movesOf(job.jobId, frames, results)
    const finished = await finishJob(deps, job, { frames: frames.length, bytes: payload.length }, moves)
    if (finished) deps.onStored?.(statsOf(results))
  } finally {
    release()
  }
}

async function storeChunks(
  deps: StoreReplayDeps,
  job: HeldJob,
  frames: readonly PayloadFrame[],
): Promise<StoredChunk[]> {
  const trying = { ...deps, holdsLock: () => deps.store.holds([job]) }
  const chunkDeps: StoreChunkDeps = {
    objects: deps.objects,
    retryUntilStopped: (what, work) => retryUntilStopped(trying, what, work),
  }
  const results: StoredChunk[] = []
  const rest = frames.entries()
  const storeRest = async () => {
    for (const [index, frame] of rest) {
      results[index] = await storeChunk(chunkDeps, job.jobId, index, frame)
      deps.onAttempt?.()
    }
  }
  // Not `all`: the payload is held until nobody looks at it any more.
  const ends = await Promise.allSettled(Array.from({ length: CONCURRENT_CHUNKS }, storeRest))
  const failed = ends.find(end => end.status === 'rejected')
  if (failed) throw failed.reason
  return results
}

/** Their ids derive from the job's, so that repeating the move adds nothing. */
function movesOf(jobId: string, frames: readonly PayloadFrame[], results: readonly StoredChunk[]): Move[] {
  const rows: PayloadFrame[] = []
  const refused: RefusedFrame[] = []
  // Of the stored ones their rows' batch tells.
  const settled: SettledRequest[] = []
  for (const [index, frame] of frames.entries()) {
    const result = results[index]
    if (result?.outcome === 'stored') rows.push(withJsonBody(frame, result.chunk))
    else if (result?.outcome === 'repeated') settled.push({ frame })
    else if (result?.outcome === 'refused') {
      const request = { jobId, index, frame, reason: result.reason }
      refused.push(request)
      settled.push(settleRefused('replay', request))
    }
  }
  const moves: Move[] = settleRequests({ jobId, kind: 'replay' }, settled)
  if (rows.length > 0) {
    moves.push({
      queue: 'replay-chunks',
      jobId: `chunks-${jobId}`,
      payload: encodePayload(rows),
      frames: rows.length,
    })
  }
  if (refused.length > 0) {
    moves.push({ queue: 'dead-letters', ...deadLetterPayload('replay', `dead-${jobId}`, refused) })
  }
  return moves
}

function statsOf(results: readonly StoredChunk[]): ReplayJobStats {
  const outcomes = new Map<string, number>()
  let storedBytes = 0
  let deadLettered = 0
  for (const result of results) {
    const outcome = result.outcome === 'refused' ? (result.reason.split(':', 1)[0] as string) : result.outcome
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (result.outcome === 'stored') storedBytes += result.chunk.storedBytes
    if (result.outcome === 'refused') deadLettered++
  }
  return { frames: results.length, deadLettered, outcomes, storedBytes }
}
