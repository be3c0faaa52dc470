import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import type { BufferPool } from '../../shared/memory/buffer-pool.ts'
import { frameBytes, PAYLOAD_HEADER_BYTES, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { hourOf } from './accept-script.ts'
import { CommitRest } from './commit-rest.ts'
import type { ExpressTraffic } from './express-traffic.ts'
import { Group, MAX_JOINED_BYTES, type WaitingRequest } from './group.ts'
import { LaneWriters, type QueueTargets, type QueueWriter } from './lane-writers.ts'
import { ACCEPTED, type CommitOutcome, type Condition, NOT_KNOWN_DURABLE } from './payload-writer.ts'
import type { ReceiptIssuer } from './receipt-issuer.ts'
import { type ClosedGroup, writeAlone, writeGroup } from './write-group.ts'

/** The collaborators of a group commit. */
interface GroupCommitDeps {
  readonly targets: QueueTargets
  readonly queue: AdmittedQueue
  readonly lane: Lane
  readonly receipts: ReceiptIssuer
  /** The express commits of the process. */
  readonly traffic: ExpressTraffic
  /** The memory of payloads, which all lanes of the process share: few of them are busy at once. */
  readonly memory: BufferPool
  readonly logger: Logger
  /** The number of replicas that must have a commit before it is confirmed. */
  readonly minReplicas: number
  /** The clock of rests and of the jobs that commits join, in ms. */
  readonly now: () => number
}

/** The bounds of a group commit. */
export interface GroupCommitOptions {
  /** The largest payload of one commit, in bytes. A frame for which that is too small is committed alone. */
  readonly maxCommitBytes: number
  /** The most frames of one commit. */
  readonly maxCommitFrames: number
  /** A frame that is not confirmed within this time of its arrival fails. Pieces of a large frame have more. */
  readonly timeoutMs: number
  /** Returns the priority of a job in the bulk lane whose most loaded surface has this much (`SurfaceShare.backlog`). */
  readonly priorityOf: (backlog: number) => number
  /** Called after each confirmed commit. */
  readonly onCommit: (frames: number, bytes: number, durationMs: number) => void
}

/** The most cost of one commit or job: about 0.1 s of a core (`WORK_PER_MS`), for which a job occupies a worker. */
const MAX_COMMIT_COST = 16 * MIB

/** The largest bulk commit while there are express commits. Redis takes some milliseconds for it. */
const YIELDING_COMMIT_BYTES = MIB

/**
 * Writes many frames with one Redis transaction. A frame waits while a commit is in flight, and the next commit takes all
 * frames that waited. So an idle edge adds no latency, and a busy edge shares each fsync and each job among hundreds of
 * requests. In between, commits rest for some milliseconds (`CommitRest`).
 *
 * The first commit after a pause starts at the end of the current turn of the event loop, so that it takes all frames
 * of that turn. Otherwise it would contain one frame, and the others would wait for the next commit. Measured with 64
 * clients and a fast fsync: 36 frames a commit instead of 25.
 *
 * Each frame is copied into its payload when it arrives: once between socket and payload.
 */
export class GroupCommit {
  readonly #writers: LaneWriters
  readonly #receipts: ReceiptIssuer
  readonly #receiptKind: AdmittedQueue
  readonly #options: GroupCommitOptions
  readonly #isBulk: boolean
  readonly #traffic: ExpressTraffic
  /** Groups in the order of arrival. Only the last one takes further frames. */
  #waiting: Group[] = []
  /** Whether commits are in flight, one after the other, or the first starts at the end of this turn of the event loop. */
  #isCommitting = false
  readonly #rest: CommitRest
  /** Ends the rest of the commit that waits for further frames. */
  #endRest: (() => void) | undefined
  #onIdle: (() => void)[] = []
  /** Commits of one frame that are in flight. */
  readonly #alone = new Set<Promise<void>>()
  readonly #memory: BufferPool

  constructor(deps: GroupCommitDeps, options: GroupCommitOptions) {
    this.#isBulk = deps.lane === 'bulk'
    this.#traffic = deps.traffic
    this.#receipts = deps.receipts
    this.#receiptKind = deps.queue
    this.#options = options
    this.#memory = deps.memory
    this.#rest = new CommitRest(MAX_JOINED_BYTES, deps.now)
    this.#writers = new LaneWriters(deps, { frames: options.maxCommitFrames, cost: MAX_COMMIT_COST })
  }

  /**
   * Adds the frame of a request to the next commit. Copies the frame, body included, before it returns. Throws a
   * TransientError when Redis is not connected or receipts cannot be issued.
   */
  enqueue(frame: PayloadFrame, request: WaitingRequest): void {
    this.#usableWriter()
    const group = this.#groupFor(frameBytes(frame), request.cost, frame.receivedAtMs)
    group.append(frame, request)
    this.#rest.arrived(this.#isCommitting)
    if (this.#endRest !== undefined && this.#rest.isEnough(group)) this.#endRest()
    if (this.#isCommitting) return
    this.#isCommitting = true
    setImmediate(() => void this.#commitAll())
  }

  /**
   * Commits the frame of a request at once and by itself: one over 4 MiB in pieces, or one that Redis accepts on a condition.
   * Several may be in flight, so that these connections must not be those of groups. Otherwise as `enqueue`.
   */
  enqueueAlone(frame: PayloadFrame, request: WaitingRequest, condition?: Condition): void {
    const writer = this.#usableWriter()
    const group = this.#openGroup(PAYLOAD_HEADER_BYTES + frameBytes(frame), frame.receivedAtMs)
    group.append(frame, request)
    const committed = this.#commitAlone(group, writer, condition).finally(() => this.#alone.delete(committed))
    this.#alone.add(committed)
  }

  /** Resolves when no frame waits, no commit is in flight and every job is added. */
  async drain(): Promise<void> {
    await Promise.all(this.#alone)
    if (this.#isCommitting) await new Promise<void>(resolve => this.#onIdle.push(resolve))
    await Promise.all(this.#writers.all.map(({ openJob }) => openJob.drain()))
  }

  /** Returns the writer whose turn it is. Throws a TransientError when nothing can be accepted. */
  #usableWriter(): QueueWriter {
    const writer = this.#writers.current
    if (writer === undefined) throw new TransientError('redis is not connected')
    if (!this.#receipts.isReady) throw new TransientError('the secret of receipts is unknown')
    return writer
  }

  #groupFor(bytes: number, cost: number, arrivedAtMs: number): Group {
    const last = this.#waiting.at(-1)
    const yields = this.#isBulk && this.#traffic.isRecent
    const fits =
      last !== undefined &&
      last.bytes + bytes <= (yields ? YIELDING_COMMIT_BYTES : last.buffer.length) &&
      last.frames < this.#options.maxCommitFrames &&
      last.cost + cost <= MAX_COMMIT_COST &&
      hourOf(last.arrivedAtMs) === hourOf(arrivedAtMs)
    if (fits) return last
    last?.close()
    const group = this.#openGroup(Math.max(PAYLOAD_HEADER_BYTES + bytes, this.#options.maxCommitBytes), arrivedAtMs)
    this.#waiting.push(group)
    return group
  }

  #openGroup(bytes: number, arrivedAtMs: number): Group {
    const receipts = this.#receipts.open(this.#receiptKind, arrivedAtMs)
    return new Group(this.#memory.take(bytes), receipts, arrivedAtMs, performance.now() + this.#options.timeoutMs)
  }

  async #commitAll(): Promise<void> {
    let ended: Group | undefined
    let end: CommitOutcome | TransientError = ACCEPTED
    while (this.#waiting.length > 0) {
      const restMs = this.#restMs()
      if (restMs > 0) {
        this.#answer(ended, end)
        ended = undefined
        await this.#restFor(restMs)
      }
      const group = this.#waiting.shift()
      if (group === undefined) break
      this.#rest.began()
      const committed = this.#commitGroup(group)
      // The clients of a group are answered when the next group is sent, so that Redis does not wait for the answers.
      this.#answer(ended, end)
      // Only one group fails. The groups that wait were never sent: each is tried within its own time.
      end = await committed
      ended = group
    }
    this.#answer(ended, end)
    this.#isCommitting = false
    for (const resolve of this.#onIdle) resolve()
    this.#onIdle = []
  }

  #answer(group: Group | undefined, end: CommitOutcome | TransientError): void {
    if (group === undefined) return
    this.#rest.answered(group.frames)
    group.answer(end)
  }

  /** Returns how many ms the next commit should wait for further frames. */
  #restMs(): number {
    const [group, next] = this.#waiting
    return group === undefined || next !== undefined || this.#endRest !== undefined ? 0 : this.#rest.msBefore(group)
  }

  /** Lets the group that waits take further frames for this time, or until it has enough. */
  async #restFor(ms: number): Promise<void> {
    const [group] = this.#waiting
    const before = group?.frames ?? 0
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#endRest = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#endRest = undefined
    this.#rest.ended((group?.frames ?? 0) - before)
  }

  /** Sends a group before it returns, if nothing has to be waited for. Resolves with the outcome, or the error if it fails. */
  async #commitGroup(group: Group): Promise<CommitOutcome | TransientError> {
    const closed = group.close()
    const payload = closed instanceof Promise ? await closed : closed
    if (!this.#isBulk) this.#traffic.begin()
    else if (this.#traffic.isBusy) await this.#traffic.gap()
    // Without a usable queue, the group waits for one within its time.
    const writer = this.#writers.current ?? (this.#writers.all[0] as QueueWriter)
    const end = await this.#write(group, payload, writer, whole => writeGroup(whole, writer))
    if (!this.#isBulk) this.#traffic.end()
    return end
  }

  /** Commits a group beside the others. */
  async #commitAlone(group: Group, writer: QueueWriter, condition: Condition | undefined): Promise<void> {
    const { timeoutMs } = this.#options
    const write = (closed: ClosedGroup) => writeAlone(closed, writer, timeoutMs, condition)
    group.answer(await this.#write(group, group.close(), writer, write))
  }

  /** Resolves with the outcome of a write, or its error. */
  async #write(
    group: Group,
    closed: Buffer | Promise<Buffer>,
    { target }: QueueWriter,
    write: (closed: ClosedGroup) => Promise<CommitOutcome>,
  ): Promise<CommitOutcome | TransientError> {
    const startedAt = performance.now()
    try {
      const payload = closed instanceof Promise ? await closed : closed
      const priority = this.#isBulk ? this.#options.priorityOf(group.backlog) : 0
      const outcome = await write({ group, payload, priority })
      if (!target.mayUse()) return new TransientError(NOT_KNOWN_DURABLE)
      // The bytes of a failed group may still be in the socket, so only memory of a confirmed one is used again.
      this.#memory.giveBack(group.buffer)
      this.#options.onCommit(group.frames, group.bytes, performance.now() - startedAt)
      return outcome
    } catch (error) {
      return error as TransientError
    }
  }
}
