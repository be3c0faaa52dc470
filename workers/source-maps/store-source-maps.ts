import { type SourceMapJob, sourceMapJobSchema } from '../../schemas/queues/source-maps.ts'
import type { Budget } from '../../shared/concurrency/budget.ts'
import { type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { deadLetterPayload, type RefusedFrame } from '../batch/open-batch.ts'
import { type FinishJobDeps, finishJob } from '../queue/finish-job.ts'
import type { HeldJob, Move } from '../queue/payload-store.ts'
import { type SettledRequest, settleRefused, settleRequests } from '../rows/settle-requests.ts'
import { type StoredPart, type StorePartDeps, storePart } from './store-part.ts'
import { type StoreSingleDeps, storeSingle } from './store-single.ts'

/** Uploads of one job that are on their way to the object store at once. */
const CONCURRENT_UPLOADS = 4

/** What became of one upload. */
export interface SourceMapStats {
  readonly kind: SourceMapJob['kind']
  /** The label of a refusal, where a part was dead-lettered. */
  readonly outcome: string
  readonly storedBytes: number
  readonly deadLettered: boolean
}

export interface StoreSourceMapsDeps
  extends Omit<StorePartDeps & StoreSingleDeps, 'retryUntilStopped'>,
    Omit<RetryDeps, 'holdsLock'>,
    FinishJobDeps {
  /** Payload bytes that the pool holds at once. */
  readonly held: Budget
  readonly onUpload?: (stats: SourceMapStats) => void
}

/** Stores the uploads of a job, then finishes it in one step that moves refused parts to the dead letters. */
export async function storeSourceMaps(deps: StoreSourceMapsDeps, job: HeldJob, payloadBytes: number): Promise<void> {
  const { store } = deps
  const giveBack = await deps.held.acquire(payloadBytes)
  try {
    const { payload } = await store.look(job.jobId)
    if (payload === null) return
    const frames = decodePayload(payload)
    const refused: RefusedFrame[] = []
    const settled: SettledRequest[] = []
    const stats: SourceMapStats[] = []
    const rest = frames.entries()
    const storeRest = async () => {
      for (const [index, frame] of rest) {
        const stored = await storeFrame(deps, job, frame)
        stats.push(stored.stats)
        const { reason } = stored
        if (reason === undefined) settled.push({ frame })
        else if (!stored.stats.deadLettered) settled.push({ frame, refusal: { reason, objectKey: '' } })
        else {
          const request = { jobId: job.jobId, index, frame, reason }
          refused.push(request)
          settled.push(settleRefused('source-maps', request))
        }
        deps.onAttempt?.()
      }
    }
    // Not `all`: the payload is held until nobody looks at it any more.
    const ends = await Promise.allSettled(Array.from({ length: CONCURRENT_UPLOADS }, storeRest))
    const failed = ends.find(end => end.status === 'rejected')
    if (failed) throw failed.reason
    const moves: Move[] = settleRequests({ jobId: job.jobId, kind: 'source-maps' }, settled)
    if (refused.length > 0) {
      moves.push({ queue: 'dead-letters', ...deadLetterPayload('source-maps', `dead-${job.jobId}`, refused) })
    }
    const finished = await finishJob(deps, job, { frames: frames.length, bytes: payload.length }, moves)
    if (finished) for (const one of stats) deps.onUpload?.(one)
  } finally {
    giveBack()
  }
}

async function storeFrame(
  deps: StoreSourceMapsDeps,
  job: HeldJob,
  frame: PayloadFrame,
): Promise<{ stats: SourceMapStats; reason?: string | undefined }> {
  const upload = sourceMapJobSchema.parse(JSON.parse(frame.attributes))
  const holdsLock = () => deps.store.holds([job])
  const storing = {
    ...deps,
    retryUntilStopped: <T>(what: string, work: () => Promise<T>) =>
      retryUntilStopped({ ...deps, holdsLock }, what, work),
  }
  if (upload.kind === 'single') {
    const { refusal, ...stored } = await storeSingle(storing, frame, upload)
    return { stats: { kind: 'single', deadLettered: false, ...stored }, ...(refusal && { reason: refusal }) }
  }
  const stored = await storePart(storing, frame, upload)
  const stats = partStats(stored, frame)
  return stored.outcome === 'refused' ? { stats, reason: stored.reason } : { stats }
}

function partStats(stored: StoredPart, frame: PayloadFrame): SourceMapStats {
  if (stored.outcome === 'stored') {
    return { kind: 'part', outcome: 'stored', storedBytes: frame.body.length, deadLettered: false }
  }
  const outcome = stored.reason.split(':', 1)[0] as string
  return { kind: 'part', outcome, storedBytes: 0, deadLettered: true }
}
