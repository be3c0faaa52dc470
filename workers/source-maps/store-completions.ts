import type { Redis } from 'ioredis'
import {
  type CompletionRecord,
  completionJobSchema,
  completionRecordSchema,
  type Verdict,
} from '../../schemas/queues/source-maps.ts'
import type { SymbolicationRequest } from '../../schemas/queues/symbolication.ts'
import type { Budget } from '../../shared/concurrency/budget.ts'
import { type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { decodePayload, encodePayload, type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { type FinishJobDeps, finishJob } from '../queue/finish-job.ts'
import type { HeldJob, Move } from '../queue/payload-store.ts'
import { type SettledRequest, settleRequests } from '../rows/settle-requests.ts'
import { type CompletedRelease, type CompleteReleaseDeps, completeRelease } from './complete-release.ts'
import { deliverCompletion } from './publish-verdict.ts'

/** A refusal names up to 20 paths; a receipt tells as much of it. */
const REASON_LIMIT = 1_000

/** What became of one completion. `forgotten`: its record is gone, it was judged before or nobody has waited for a day. */
export interface CompletionStats {
  readonly outcome: CompletedRelease['outcome'] | 'forgotten' | 'failed'
  readonly files: number
  readonly storedBytes: number
  /** Since the edge took it. */
  readonly ageMs: number
}

export interface StoreCompletionsDeps
  extends Omit<CompleteReleaseDeps, 'retryUntilStopped'>,
    Omit<RetryDeps, 'holdsLock'>,
    FinishJobDeps {
  readonly redis: Redis
  /** Payload bytes that the pool holds at once. */
  readonly held: Budget
  readonly onCompletion?: (stats: CompletionStats) => void
}

/**
 * Works on the completions of a job: each is judged, its verdict given to the edge that waits, and its release passed on
 * to the queue `symbolication` in the step that finishes the job.
 */
export async function storeCompletions(deps: StoreCompletionsDeps, job: HeldJob, payloadBytes: number): Promise<void> {
  const { store } = deps
  const giveBack = await deps.held.acquire(payloadBytes)
  try {
    const { payload } = await store.look(job.jobId)
    if (payload === null) return
    const frames = decodePayload(payload)
    const completed: PayloadFrame[] = []
    const settled: SettledRequest[] = []
    const all: CompletionStats[] = []
    for (const frame of frames) {
      const { stats, passedOn, reason } = await judge(deps, job, frame)
      all.push(stats)
      settled.push({ frame, ...(reason !== undefined && { refusal: { reason, objectKey: '' } }) })
      if (passedOn) completed.push(passedOn)
    }
    const moves: Move[] = settleRequests({ jobId: job.jobId, kind: 'completions' }, settled)
    if (completed.length > 0) {
      const symbolication = { payload: encodePayload(completed), frames: completed.length }
      moves.push({ queue: 'symbolication', jobId: `release-${job.jobId}`, ...symbolication })
    }
    const finished = await finishJob(deps, job, { frames: frames.length, bytes: payload.length }, moves)
    if (finished) for (const stats of all) deps.onCompletion?.(stats)
  } finally {
    giveBack()
  }
}

async function judge(
  deps: StoreCompletionsDeps,
  job: HeldJob,
  frame: PayloadFrame,
): Promise<{ stats: CompletionStats; passedOn?: PayloadFrame; reason?: string }> {
  const { redis, store, logger } = deps
  const { workspaceId, surfaceId, receivedAtMs, body } = frame
  const { slug, attempt, digest } = completionJobSchema.parse(JSON.parse(frame.attributes))
  const place = { workspaceId, surfaceId, slug }
  const recordKey = uploadKeys(place).completion(digest)
  const stats = { files: 0, storedBytes: 0, ageMs: deps.now() - receivedAtMs }
  const record = await readRecord(redis, recordKey)
  if (record?.attempt !== attempt) {
    return {
      stats: { ...stats, outcome: 'forgotten' },
      reason: 'forgotten: it was refused before, or waited for a day',
    }
  }
  const holdsLock = () => store.holds([job])
  const completeDeps: CompleteReleaseDeps = {
    ...deps,
    retryUntilStopped(what, work) {
      // A completion of thousands of maps would outlast the shutdown; the next worker finds those that are stored.
      if (deps.stopping.aborted) throw new TransientError('stopped within a completion')
      return retryUntilStopped({ ...deps, holdsLock }, what, work)
    },
  }
  try {
    const completed = await completeRelease(completeDeps, { ...place, sequence: record.sequence, body })
    const verdict = verdictOf(completed)
    const fileCount = completed.outcome === 'refused' ? 0 : completed.fileCount
    await deliverCompletion(redis, recordKey, { ...record, fileCount }, verdict)
    const storedBytes = completed.outcome === 'completed' ? completed.storedBytes : 0
    const done = { outcome: completed.outcome, files: fileCount, storedBytes, ageMs: deps.now() - receivedAtMs }
    if (completed.outcome === 'refused') {
      return { stats: done, reason: `${completed.code}: ${completed.message}`.slice(0, REASON_LIMIT) }
    }
    if (completed.outcome === 'superseded') return { stats: done }
    const request: SymbolicationRequest = { kind: 'release', slug, release: completed.release.name }
    return { stats: done, passedOn: withJsonBody(frame, request) }
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    logger.error({ workspaceId, slug, error: describeError(error) }, 'a completion met a fault that stays')
    const message = 'the completion could not be carried out'
    await deliverCompletion(redis, recordKey, record, { ok: false, code: 'INTERNAL', message })
    return { stats: { ...stats, outcome: 'failed' }, reason: `INTERNAL: ${message}` }
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
