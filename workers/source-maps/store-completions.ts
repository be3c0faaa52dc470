import type { Redis } from 'ioredis'
import {
  COMPLETION_RECORD_VERSION,
  type CompletionRecord,
  completionJobSchema,
  completionRecordSchema,
  type Verdict,
} from '../../schemas/queues/source-maps.ts'
import type { SymbolicationRequest } from '../../schemas/queues/symbolication.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { errorFields, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type FrameDeps, type FramePlan, type ProcessedFrame, processFrames } from '../queue/process-frames.ts'
import { type CompletedRelease, type CompleteReleaseDeps, completeRelease } from './complete-release.ts'
import { deliverCompletion } from './publish-verdict.ts'

const PLAN: FramePlan<CompletionStats> = {
  queue: 'completions',
  concurrency: 1,
  next: { queue: 'symbolication', jobIdPrefix: 'release', settlesRequests: false },
  statsOfRefusal: (_reason, { receivedAtMs }) => ({
    outcome: 'failed',
    files: 0,
    storedBytes: 0,
    ageMs: Date.now() - receivedAtMs,
  }),
}

/**
 * The outcome of one completion. `forgotten`: its record is gone, because it was refused before, replaced by the same request
 * or removed with its release.
 */
export interface CompletionStats {
  readonly outcome: CompletedRelease['outcome'] | 'forgotten' | 'failed'
  readonly files: number
  readonly storedBytes: number
  /** Time since the edge accepted the completion. */
  readonly ageMs: number
}

/** Dependencies of processing completions. */
export interface StoreCompletionsDeps extends Omit<CompleteReleaseDeps, 'retry'>, FrameDeps {
  readonly redis: Redis
  /** Reports a completion of a job that this worker finished. */
  readonly onCompletion?: (stats: CompletionStats) => void
}

/**
 * Processes the completions of a job in turn. Each is judged, its verdict is published to the edge whose client waits, and
 * its release moves to the queue `symbolication` in the step that finishes the job.
 */
export async function storeCompletions(deps: StoreCompletionsDeps, job: TakenJob): Promise<void> {
  const plan = { ...PLAN, onRefused: (frame: PayloadFrame) => endWait(deps, frame) }
  const completions = await processFrames(deps, plan, job, (frame, _index, retry) =>
    processCompletion(deps, frame, retry),
  )
  for (const stats of completions ?? []) deps.onCompletion?.(stats)
}

async function processCompletion(
  deps: StoreCompletionsDeps,
  frame: PayloadFrame,
  retry: Retry,
): Promise<ProcessedFrame<CompletionStats>> {
  const { redis, logger } = deps
  const { workspaceId, surfaceId, receivedAtMs, body } = frame
  const { slug, attempt, digest } = completionJobSchema.parse(JSON.parse(frame.attributes))
  const release = { workspaceId, surfaceId, slug }
  const stats = (outcome: CompletionStats['outcome'], files = 0, storedBytes = 0): CompletionStats => ({
    outcome,
    files,
    storedBytes,
    ageMs: deps.now() - receivedAtMs,
  })
  const record = await readRecord(redis, uploadKeys(release).completion(digest))
  if (record?.attempt !== attempt) {
    return refused(stats('forgotten'), {
      label: 'forgotten',
      detail: 'it was refused before, sent again, or removed with its release',
    })
  }
  if (record.version > COMPLETION_RECORD_VERSION) {
    throw new TransientError('the record of a completion is of a newer version: left to a newer worker')
  }
  const completeDeps = { ...deps, retry: untilStopping(deps.stopping, retry) }
  try {
    const completed = await completeRelease(completeDeps, {
      ...release,
      sequence: record.sequence,
      repeats: record.repeats,
      body,
    })
    const fileCount = completed.outcome === 'refused' ? 0 : completed.fileCount
    await deliverCompletion(redis, { release, digest, record: { ...record, fileCount } }, verdictOf(completed))
    if (completed.outcome === 'refused') {
      return refused(stats('refused'), { label: completed.code, detail: completed.message })
    }
    if (completed.outcome === 'superseded') return { stats: stats('superseded', fileCount) }
    const request: SymbolicationRequest = { kind: 'release', slug, release: completed.release.name }
    return { stats: stats('completed', fileCount, completed.storedBytes), passedOn: withJsonBody(frame, request) }
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    logger.error({ workspaceId, slug, ...errorFields(error) }, 'a completion failed permanently')
    const message = 'the completion could not be carried out'
    await deliverCompletion(redis, { release, digest, record }, { ok: false, code: 'INTERNAL', message })
    return refused(stats('failed'), { label: 'INTERNAL', detail: message })
  }
}

/** Answers the client of a completion that is refused without a verdict, and lets its record go. */
async function endWait({ redis }: StoreCompletionsDeps, frame: PayloadFrame): Promise<void> {
  const job = completionJobSchema.safeParse(parseJson(frame.attributes))
  if (!job.success) return
  const { slug, attempt, digest } = job.data
  const release = { workspaceId: frame.workspaceId, surfaceId: frame.surfaceId, slug }
  const record = await readRecord(redis, uploadKeys(release).completion(digest))
  if (record?.attempt !== attempt) return
  const message = 'the completion could not be carried out'
  await deliverCompletion(redis, { release, digest, record }, { ok: false, code: 'INTERNAL', message })
}

/** Nothing of a refused completion is kept: its client was sent the reason. */
function refused(stats: CompletionStats, reason: Reason): ProcessedFrame<CompletionStats> {
  return { stats, refusal: { reason, isDeadLetter: false } }
}

/**
 * Returns a retry that starts nothing once the process is stopping. A completion of thousands of maps would outlast the
 * shutdown; the next worker finds the maps that are stored.
 */
function untilStopping(stopping: AbortSignal, retry: Retry): Retry {
  return (operation, work) => {
    if (stopping.aborted) throw new TransientError('stopped within a completion', { code: 'PENSTOCK_STOPPING' })
    return retry(operation, work)
  }
}

async function readRecord(redis: Redis, key: string): Promise<CompletionRecord | undefined> {
  const text = await redis.get(key)
  return text === null ? undefined : completionRecordSchema.parse(JSON.parse(text))
}

function verdictOf(completed: CompletedRelease): Verdict {
  if (completed.outcome === 'refused') return { ok: false, code: completed.code, message: completed.message }
  return { ok: true, value: { ok: true, fileCount: completed.fileCount } }
}
