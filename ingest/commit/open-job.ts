import { OPEN_PAYLOAD_BYTES } from '../../shared/queue/queue.ts'
import type { NewJob } from './job-writer.ts'

/** A small commit, as far as it matters for the job that it joins. */
export interface CommitSize {
  readonly bytes: number
  readonly frames: number
  readonly cost: number
}

/** The most of each that one job may have. */
export type OpenJobLimits = Omit<CommitSize, 'bytes'>

/**
 * The least time between two jobs of a lane that are added for small commits. A worker spends about a millisecond of CPU on
 * a job, however small, and commits join a job as long as no worker has read its payload.
 */
const JOB_SPACING_MS = 10

/** How long commits try to join a job that is added. An attempt costs a transaction, and a later one would fail more often. */
const TRY_FOR_MS = 100

/**
 * Time without such attempts after one has failed that was the first for its job, because while workers take jobs at once most
 * of them fail. A job that others had joined was taken after a rest (`workers/queue/pool.ts`), and the next one waits as long.
 */
const TRY_AGAIN_MS = 100

/**
 * The most seconds by which a bulk commit may go earlier because it joins a job (`bulkPriority`). More would let a surface
 * with much work pass those with little.
 */
const MAX_PRIORITY_GAIN_S = 2

/**
 * The newest job of one lane, which small commits join. The job is added to the lane when the one before it is old enough, or
 * with the next payload. The first job after a pause is added with its own.
 */
export class OpenJob {
  readonly #add: (job: NewJob) => Promise<void>
  readonly #limits: OpenJobLimits
  readonly #now: () => number
  #job: NewJob | undefined
  #size: CommitSize = { bytes: 0, frames: 0, cost: 0 }
  #isJoined = false
  /** The job that is not added yet, with the timer that adds it. */
  #due: { readonly job: NewJob; readonly timer: NodeJS.Timeout } | undefined
  #addedAt = Number.NEGATIVE_INFINITY
  #tryAgainAt = Number.NEGATIVE_INFINITY
  readonly #adding = new Set<Promise<void>>()

  constructor(add: (job: NewJob) => Promise<void>, limits: OpenJobLimits, now: () => number) {
    this.#add = add
    this.#limits = limits
    this.#now = now
  }

  /**
   * Returns the job that a commit of this size and priority may join, or undefined. No worker has read a job that is not
   * added yet. One that is added may still be in the queue if jobs before it were. A commit never joins a job that goes later
   * than its own would, or much earlier.
   */
  joinable({ bytes, frames, cost }: CommitSize, priority: number): string | undefined {
    const { bytes: held, frames: heldFrames, cost: heldCost } = this.#size
    const fits =
      held + bytes <= OPEN_PAYLOAD_BYTES &&
      heldFrames + frames <= this.#limits.frames &&
      heldCost + cost <= this.#limits.cost
    const now = this.#now()
    const isLikelyOpen = this.#due !== undefined || (now >= this.#tryAgainAt && now - this.#addedAt < TRY_FOR_MS)
    if (!fits || !isLikelyOpen || this.#job === undefined) return undefined
    const gain = priority - this.#job.priority
    return gain >= 0 && gain <= MAX_PRIORITY_GAIN_S ? this.#job.jobId : undefined
  }

  /** Notes that a commit has joined the job. */
  joined({ bytes, frames, cost }: CommitSize): void {
    const size = this.#size
    this.#isJoined = true
    this.#size = { bytes: size.bytes + bytes, frames: size.frames + frames, cost: size.cost + cost }
  }

  /** Notes that a commit could not join the job, because a worker has read it. */
  refused(): void {
    this.close()
    if (!this.#isJoined) this.#tryAgainAt = this.#now() + TRY_AGAIN_MS
  }

  /**
   * Returns the job to add in the transaction that creates the payload of `next`: the one before if it still waits, else
   * `next` if the last one is old enough. A transaction that failed must give it to `add`.
   */
  takeDue(next: NewJob): NewJob | undefined {
    const due = this.#takeWaiting() ?? (this.#now() - this.#addedAt >= JOB_SPACING_MS ? next : undefined)
    if (due !== undefined) this.#addedAt = this.#now()
    return due
  }

  /** Takes the job of a payload that was created, and adds it when the last one is old enough if it is not added yet. */
  created(job: NewJob, size: CommitSize, isAdded: boolean): void {
    this.#job = job
    this.#size = size
    this.#isJoined = false
    if (isAdded) return
    const waitMs = this.#addedAt + JOB_SPACING_MS - this.#now()
    this.#due = { job, timer: setTimeout(() => this.flush(), waitMs) }
  }

  /** Adds a job by itself, such as one whose transaction failed. Adding it twice does no harm. */
  add(job: NewJob): void {
    const added = this.#add(job).finally(() => this.#adding.delete(added))
    this.#adding.add(added)
  }

  /** Lets no commit join the job any more, because its state is unknown. */
  close(): void {
    this.#job = undefined
  }

  /** Adds the job that waits, if there is one. */
  flush(): void {
    const job = this.#takeWaiting()
    if (job === undefined) return
    this.#addedAt = this.#now()
    this.add(job)
  }

  #takeWaiting(): NewJob | undefined {
    if (this.#due === undefined) return undefined
    const { job, timer } = this.#due
    clearTimeout(timer)
    this.#due = undefined
    const { frames, bytes } = this.#size
    return { ...job, data: { payloads: frames, bytes } }
  }

  /** Adds the job that waits, and resolves when none is being added. */
  async drain(): Promise<void> {
    this.flush()
    await Promise.all(this.#adding)
  }
}
