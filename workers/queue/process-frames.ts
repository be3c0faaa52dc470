import { z } from 'zod'
import type { Settlement } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import type { Budget } from '../../shared/concurrency/budget.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { type Retry, type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { refusalStatus } from '../../shared/object-store/errors.ts'
import { isReplayed, replayedFrom, withReplay } from '../../shared/queue/letters/replayed-letter.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import {
  describeError,
  errorFields,
  errorMessage,
  isMemoryError,
  PermanentError,
  TransientError,
} from '../../shared/runtime/errors.ts'
import { type Reason, reasonText } from '../../shared/runtime/reason.ts'
import type { RefusedFrame } from './letter-moves.ts'
import { keepLetters, type LetterQuota } from './letter-quota.ts'
import { frameMoves, type SettledRequest, settlementMoves } from './moves.ts'
import { type LockedJob, type Move, type NewPayload, type PayloadStore, sharesOf } from './payloads/payload-store.ts'
import type { TakenJob } from './pool.ts'
import type { RepeatedFailures } from './repeated-failures.ts'
import { settledLetter } from './settled-letter.ts'
import type { Suspects } from './suspects.ts'

/** Adds jobs for payloads that are already in Redis. Jobs that exist are left alone. */
export type AddJobs = (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>

/** Dependencies of a pool that processes one job at a time, without batches. */
export interface JobDeps extends Omit<RetryDeps, 'holdsLock' | 'onFailure'> {
  readonly store: Pick<PayloadStore, 'look' | 'holdsLocks' | 'finishJob' | 'giveBack'>
  readonly addJobs: AddJobs
  /** Bounds the dead letters of a surface. Without it, all are kept. */
  readonly letterQuota?: LetterQuota | undefined
}

/** Result of the work on a job, and the payloads that go to other queues. */
interface ProcessedJob<Result> {
  readonly result: Result
  readonly moves: readonly Move[]
  /** Whether nothing uses the frames any more once the job is finished, no connection either. Then their memory is freed. */
  readonly isReleased?: boolean
}

/** Retries an operation. `onFailure` may end the retries of one item. */
type RetryItem = <T>(operation: string, work: () => Promise<T>, onFailure?: (error: unknown) => void) => Promise<T>

/**
 * Runs `work` on the frames of a job's payload, then finishes the job: one script deletes the payload and stores the
 * moves, and the moved payloads get their jobs. A worker that dies before the script leaves the job to the next worker.
 * If it dies after the script, the sweeper adds the jobs of the moved payloads. Returns undefined when the payload is
 * gone, or when another worker finished the job first.
 */
export async function processJob<Result>(
  deps: JobDeps,
  job: LockedJob,
  work: (frames: readonly PayloadFrame[], retry: RetryItem) => Promise<ProcessedJob<Result>>,
): Promise<Result | undefined> {
  const { payload } = await deps.store.look(job.jobId)
  if (payload === null) return undefined
  const frames = decodePayload(payload)
  const retryDeps = { ...deps, holdsLock: () => deps.store.holdsLocks([job]) }
  const { result, moves, isReleased } = await work(frames, (operation, attempt, onFailure) =>
    retryUntilStopped({ ...retryDeps, onFailure }, operation, attempt),
  )
  const done = { frames: frames.length, bytes: payload.length, shares: sharesOf(frames) }
  const { isFirst } = await deps.store.finishJob(job.jobId, done, moves)
  // Needed even if the job was finished before, since this very call may have been sent twice. A job without a payload
  // does nothing.
  await addMovedJobs(deps.addJobs, moves)
  if (isReleased) deps.store.giveBack(payload)
  return isFirst ? result : undefined
}

/** Moves all requests of a job to the dead letters for this reason, without reading them. */
export async function refuseJob(deps: JobDeps, queue: QueueName, job: LockedJob, reason: Reason): Promise<void> {
  await processJob(deps, job, async frames => {
    const refused = frames.map((frame, index): RefusedFrame => ({ jobId: job.jobId, index, frame, reason }))
    const letters = await keepLetters(deps.letterQuota, queue, job.jobId, refused)
    return { result: undefined, moves: letters.moves }
  })
}

/** Adds the jobs of payloads that a finishing script has moved to other queues. */
export async function addMovedJobs(addJobs: AddJobs, moves: readonly Move[]): Promise<void> {
  for (const [queue, own] of Map.groupBy(moves, move => move.queue)) await addJobs(queue, own)
}

/** Dependencies of a pool that processes jobs frame by frame. */
export interface FrameDeps extends JobDeps {
  /** Payload bytes that the pool may hold at the same time. */
  readonly memory: Pick<Budget, 'run'>
  readonly suspects: Suspects
  /** Frames that a store refuses again and again. */
  readonly failures: RepeatedFailures
}

/** Settings with which a pool processes frames. */
export interface FramePlan<Stats> {
  /** The queue that the pool consumes, which is also the kind of its receipts. */
  readonly queue: QueueName & Settlement['kind']
  /** Frames of one job in progress at the same time. */
  readonly concurrency: number
  /** The queue of the frames that are passed on. */
  readonly next?: {
    readonly queue: QueueName
    /** The job id of the passed-on frames is `<jobIdPrefix>-<job id>`. */
    readonly jobIdPrefix: string
    /** The batch of the next queue reports the outcome of the request, so this job must not. */
    readonly settlesRequests: boolean
  }
  /** Ends what waits for a frame that could not be processed. */
  readonly onRefused?: (frame: PayloadFrame) => Promise<void>
  /** Returns the stats of a frame that could not be processed. */
  readonly statsOfRefusal: (reason: Reason, frame: PayloadFrame) => Stats
}

/** The outcome of one frame. Without a refusal, its request is stored. */
export interface ProcessedFrame<Stats> extends Pick<SettledRequest, 'counted'> {
  readonly stats: Stats
  /** A frame for the next queue. */
  readonly passedOn?: PayloadFrame | undefined
  readonly refusal?: FrameRefusal | undefined
  /**
   * Whether no connection can still send the body. One can where a store has answered before it has read the whole body, which
   * only a store that fails or refuses a request does.
   */
  readonly isReleased?: boolean
}

/** Why a frame is not stored, and whether its request becomes a dead letter. */
interface FrameRefusal {
  readonly reason: Reason
  readonly isDeadLetter: boolean
}

/** A frame that a store refuses gives its place to other jobs after this long. It is tried again later. */
const GIVE_UP_PLACE_MS = 60_000

/**
 * Processes each frame of a job, then finishes the job in one step that moves the passed-on frames, the settlements and
 * the dead letters to their queues. The payload counts against the budget until no frame is in progress any more. Returns
 * the stats of the frames in order, or undefined when another worker finished the job.
 *
 * A frame that cannot be processed becomes a dead letter, and its neighbours are not affected: if its processing throws a
 * fault of the frame (`isFaultOfFrame`), or if its store refuses it again and again while it accepts others.
 */
export function processFrames<Stats>(
  deps: FrameDeps,
  plan: FramePlan<Stats>,
  job: TakenJob,
  processFrame: (frame: PayloadFrame, index: number, retry: Retry) => Promise<ProcessedFrame<Stats>>,
): Promise<readonly Stats[] | undefined> {
  const run = (work: (frame: PayloadFrame, index: number, retry: Retry) => Promise<ProcessedFrame<Stats>>) =>
    deps.memory.run(
      job.payloadBytes,
      () =>
        processJob(deps, job, async (frames, retry) => {
          const processed: ProcessedFrame<Stats>[] = new Array(frames.length)
          await forEachConcurrently(frames, { concurrency: plan.concurrency }, async (frame, index) => {
            processed[index] = await work(frame, index, retryFrame(deps, `${job.jobId} ${index}`, retry)).catch(error =>
              refusedByFault(deps, plan, frame, error),
            )
            deps.onSuccess?.()
          })
          const moves = await movesOf(plan, job, deps.letterQuota, frames, processed)
          const isReleased = processed.every(frame => frame.isReleased)
          return { result: processed.map(({ stats }) => stats), moves, isReleased }
        }),
      { lane: job.lane },
    )
  return deps.suspects.run(job, {
    process: () => run(processFrame),
    setAside: reason => run(frame => refusedFrame(plan, frame, reason)),
  })
}

/** Returns a retry that ends when the store refuses this frame again and again. */
function retryFrame({ failures }: FrameDeps, item: string, retry: RetryItem): Retry {
  return async (operation, work) => {
    const result = await retry(operation, work, error => {
      const code = refusalCode(error)
      if (failures.failed(OBJECTS, item, code)) {
        throw new PermanentError(`refused again and again: ${errorMessage(error)}`, { cause: error })
      }
      if (failures.failingMs(item) > GIVE_UP_PLACE_MS) {
        throw new TransientError('the store refuses a request; the job is tried again later', { cause: error })
      }
    })
    failures.succeeded(OBJECTS, item)
    return result
  }
}

/** The object store, as the target of frames. */
const OBJECTS = 'objects'

/** Returns the status with which the object store refuses a request that it might accept later, or undefined. */
function refusalCode(error: unknown): string | undefined {
  const status = error instanceof TransientError ? refusalStatus(error.cause) : undefined
  const isRefusal = status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429
  return isRefusal ? String(status) : undefined
}

async function refusedByFault<Stats>(
  { logger }: FrameDeps,
  plan: FramePlan<Stats>,
  frame: PayloadFrame,
  error: unknown,
): Promise<ProcessedFrame<Stats>> {
  if (!isFaultOfFrame(error)) throw error
  const { workspaceId, surfaceId } = frame
  logger.error({ queue: plan.queue, workspaceId, surfaceId, ...errorFields(error) }, 'a request cannot be processed')
  return refusedFrame(plan, frame, { label: 'decoder_fault', detail: describeError(error) })
}

/**
 * Returns whether processing the same frame would throw the same error. All other errors are of a store or of the process,
 * and the job is retried.
 */
export function isFaultOfFrame(error: unknown): boolean {
  if (error instanceof PermanentError || error instanceof z.ZodError) return true
  if (isMemoryError(error)) return false
  // Network errors are TypeErrors with a cause.
  if (error instanceof TypeError) return error.cause === undefined
  return error instanceof SyntaxError || error instanceof RangeError
}

async function refusedFrame<Stats>(
  plan: FramePlan<Stats>,
  frame: PayloadFrame,
  reason: Reason,
): Promise<ProcessedFrame<Stats>> {
  await plan.onRefused?.(frame)
  return { stats: plan.statsOfRefusal(reason, frame), refusal: { reason, isDeadLetter: true } }
}

async function movesOf(
  { queue, next }: FramePlan<unknown>,
  { jobId }: LockedJob,
  quota: LetterQuota | undefined,
  frames: readonly PayloadFrame[],
  processed: readonly ProcessedFrame<unknown>[],
): Promise<Move[]> {
  const letters = await keepLetters(quota, queue, jobId, refusedFrames(jobId, frames, processed))
  const passedOn: PayloadFrame[] = []
  const settled: SettledRequest[] = []
  const settledLetters: PayloadFrame[] = []
  for (const [index, frame] of frames.entries()) {
    const outcome = processed[index]
    const letter = replayedFrom(frame)
    const isSettledLater = outcome?.passedOn !== undefined && next?.settlesRequests === true
    if (letter !== undefined && !isSettledLater) {
      const refusal = outcome?.refusal && { reason: outcome.refusal.reason }
      settledLetters.push(settledLetter({ frame, letter, refusal }, Date.now()))
    }
    if (outcome?.passedOn) {
      // The batch that settles the request settles its letter too.
      passedOn.push(
        letter && isSettledLater ? { ...outcome.passedOn, attributes: withReplay('', letter) } : outcome.passedOn,
      )
    }
    if (outcome?.refusal) {
      const objectKey = letter?.objectKey ?? letters.objectKeys.get(index) ?? ''
      const isDiscarded = outcome.refusal.isDeadLetter && objectKey === ''
      settled.push({ frame, refusal: { reason: reasonText(outcome.refusal.reason), objectKey, isDiscarded } })
    } else if (!isSettledLater) settled.push({ frame, counted: outcome?.counted })
  }
  return [
    ...settlementMoves({ jobId, kind: queue }, settled),
    ...(next ? frameMoves(next.queue, `${next.jobIdPrefix}-${jobId}`, passedOn) : []),
    ...frameMoves('dead-letter-index', `replayed-${jobId}`, settledLetters),
    ...letters.moves,
  ]
}

function refusedFrames(
  jobId: string,
  frames: readonly PayloadFrame[],
  processed: readonly ProcessedFrame<unknown>[],
): RefusedFrame[] {
  return frames.flatMap((frame, index) => {
    const refusal = processed[index]?.refusal
    const isNewLetter = refusal?.isDeadLetter && !isReplayed(frame.attributes)
    return isNewLetter ? [{ jobId, index, frame, reason: refusal.reason }] : []
  })
}
