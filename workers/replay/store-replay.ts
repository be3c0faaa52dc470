import { withJsonBody } from '../../shared/queue/payload-frame.ts'
import type { RefusalLabel } from '../../shared/runtime/reason.ts'
import type { PayloadStore } from '../queue/payloads/payload-store.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type FrameDeps, type FramePlan, type ProcessedFrame, processFrames } from '../queue/process-frames.ts'
import type { KnownScrubbing } from '../scrubbing/known-scrubbing.ts'
import type { Inspector, LaneInspector } from './inspect-chunk.ts'
import { type StoreChunkDeps, type StoredChunk, storeChunk } from './store-chunk.ts'

/** A job is up to 4 MiB of chunks, or one larger chunk. The batch of the queue `replay-chunks` reports stored chunks. */
const PLAN: FramePlan<StoredChunk> = {
  queue: 'replay',
  concurrency: 4,
  next: { queue: 'replay-chunks', jobIdPrefix: 'chunks', settlesRequests: true },
  statsOfRefusal: reason => ({ outcome: 'refused', reason }),
}

/** Counters of one job of replay chunks. */
export interface ReplayJobStats {
  readonly frames: number
  readonly deadLettered: number
  readonly outcomes: ReadonlyMap<'stored' | 'repeated' | RefusalLabel, number>
  readonly storedBytes: number
}

/** Dependencies of storing replay chunks. */
export interface StoreReplayDeps extends Pick<StoreChunkDeps, 'objects'>, FrameDeps {
  readonly inspect: LaneInspector
  readonly scrubbing: Pick<KnownScrubbing, 'of'>
  readonly store: FrameDeps['store'] & Pick<PayloadStore, 'untilReplicated'>
  /** Reports the counters of a job that this worker finished. */
  readonly onStored?: (stats: ReplayJobStats) => void
}

/**
 * Stores the chunks of a job as objects, then finishes the job in one step that moves the rows of their index to the queue
 * `replay-chunks` and refused chunks to the dead letters. A worker that takes up the job after a crash finds its own
 * objects, so each object has exactly one row.
 *
 * Replicas must have the payload, as it was read, before its objects are stored. If a promoted replica lacked it, its objects would
 * have no row, and the repeated upload of a client would be taken for a copy that needs none.
 *
 * While the rules of a workspace are unknown, its jobs are retried: nothing is stored that they might have scrubbed.
 */
export async function storeReplay(deps: StoreReplayDeps, job: TakenJob): Promise<void> {
  let replicated: Promise<void> | undefined
  const results = await processFrames(deps, PLAN, job, async (frame, index, retry) => {
    replicated ??= deps.store.untilReplicated(job)
    await replicated
    const { ofValues } = await deps.scrubbing.of(frame.workspaceId)
    const inspect: Inspector = (body, encoding) => deps.inspect(body, encoding, job.lane, ofValues)
    const chunk = await storeChunk({ objects: deps.objects, inspect, retry }, job.jobId, index, frame)
    return {
      stats: chunk,
      passedOn: chunk.outcome === 'stored' ? withJsonBody(frame, chunk.chunk) : undefined,
      counted: chunk.outcome === 'repeated' ? countedOf(chunk.truncatedLines) : undefined,
      refusal: chunk.outcome === 'refused' ? { reason: chunk.reason, isDeadLetter: true } : undefined,
    } satisfies ProcessedFrame<StoredChunk>
  })
  if (results) deps.onStored?.(statsOf(results))
}

function countedOf(truncatedLines: number | undefined) {
  return truncatedLines === undefined ? undefined : { truncated_line: truncatedLines }
}

function statsOf(results: readonly StoredChunk[]): ReplayJobStats {
  const outcomes = new Map<'stored' | 'repeated' | RefusalLabel, number>()
  let storedBytes = 0
  let deadLettered = 0
  for (const result of results) {
    const outcome = result.outcome === 'refused' ? result.reason.label : result.outcome
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (result.outcome === 'stored') storedBytes += result.chunk.storedBytes
    if (result.outcome === 'refused') deadLettered++
  }
  return { frames: results.length, deadLettered, outcomes, storedBytes }
}
