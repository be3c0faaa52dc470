import type { IngestQueue } from '../../schemas/queues/names.ts'
import type { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { BufferPool } from '../../shared/memory/buffer-pool.ts'
import { PIECE_BYTES, writeInPieces } from '../../shared/queue/large-values.ts'
import { packPayload } from '../../shared/queue/packed-payload.ts'
import {
  appendFrame,
  beginPayload,
  frameBytes,
  PAYLOAD_HEADER_BYTES,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { RequestPlace } from '../admission/surface-share.ts'
import { NOT_KNOWN_DURABLE } from './fenced-commit.ts'
import type { WaitingRequest } from './group.ts'
import { LaneWriters, type QueueTargets, type QueueWriter } from './lane-writers.ts'
import type { ReceiptIssuer } from './receipt-issuer.ts'

/** Time for each piece beyond that of the commit. A piece takes about 10 ms on a quiet machine. */
const PIECE_MS = 250

/** The collaborators of `LargeCommit`. Only large commits use the connections. */
interface LargeCommitDeps {
  readonly targets: QueueTargets
  readonly queue: IngestQueue
  readonly receipts: ReceiptIssuer
  readonly logger: Logger
  /** Large frames that this process writes at once, for all queues. */
  readonly slots: FairShares
  /** The memory of payloads. */
  readonly memory: BufferPool
  /** The number of replicas that must have a commit before it is confirmed. None by default. */
  readonly minReplicas?: number
}

/** The bounds of large commits. */
interface LargeCommitOptions {
  /** How long Redis may take to confirm a piece, and the commit after the last one. */
  readonly timeoutMs: number
  /** Returns the priority of a job whose surface has this much (`SurfaceShare.backlog`). */
  readonly priorityOf: (backlog: number) => number
  /** Called after each confirmed commit. */
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** Writes frames over 4 MiB, each in a payload of its own, to the bulk lane of a queue. */
export class LargeCommit {
  readonly #deps: LargeCommitDeps
  readonly #options: LargeCommitOptions
  readonly #writers: LaneWriters
  readonly #inFlight = new Set<Promise<void>>()

  constructor(deps: LargeCommitDeps, options: LargeCommitOptions) {
    this.#deps = deps
    this.#options = options
    this.#writers = new LaneWriters({ ...deps, lane: 'bulk' }, { frames: 1, cost: 0 })
  }

  /**
   * Begins to write the frame of a request. Copies the frame, body included, before it returns. Returns false when its
   * surface already writes as many large frames as it may. Throws a TransientError when Redis is not connected.
   */
  enqueue(frame: PayloadFrame, place: RequestPlace, request: WaitingRequest): boolean {
    const { receipts, slots, memory, queue } = this.#deps
    const writer = this.#writers.current
    if (writer === undefined) throw new TransientError('redis is not connected')
    if (!receipts.isReady) throw new TransientError('the secret of receipts is unknown')
    const owner = place.share.member
    if (!slots.take(owner, 1)) return false
    const commit = receipts.open(queue, frame.receivedAtMs)
    const receiptId = Buffer.from(commit.idOf(0, commit.issue(frame)))
    const payload = memory.take(PAYLOAD_HEADER_BYTES + frameBytes(frame))
    appendFrame(payload, beginPayload(payload), frame, commit.receipt, place.cost)
    const isPlain = frame.contentEncoding === 'identity'
    const written = this.#write(payload, frame.receivedAtMs, isPlain, place, writer)
      .finally(() => slots.give(owner, 1))
      .then(
        () => request.confirmed(receiptId),
        (error: TransientError) => request.failed(error),
      )
      .finally(() => this.#inFlight.delete(written))
    this.#inFlight.add(written)
    return true
  }

  /** Resolves when nothing is in flight. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#inFlight)
  }

  async #write(
    payload: Buffer,
    arrivedAtMs: number,
    isPlain: boolean,
    { share, cost }: RequestPlace,
    writer: QueueWriter,
  ): Promise<void> {
    const { timeoutMs, priorityOf, onCommit } = this.#options
    const startedAt = performance.now()
    const jobId = newJobId()
    await this.#sendPieces(jobId, isPlain ? await packPayload(payload) : payload, writer)
    const content = {
      payload: undefined,
      bytes: payload.length,
      frames: 1,
      arrivedAtMs,
      surfaces: new Map([[share.member, { cost, requests: 1 }]]),
      priority: priorityOf(share.backlog),
    }
    await writer.commit.write(jobId, content, timeoutMs)
    if (!writer.target.mayUse()) throw new TransientError(NOT_KNOWN_DURABLE)
    // A payload whose write failed may still be in the socket, so only memory of a confirmed one is used again.
    this.#deps.memory.giveBack(payload)
    onCommit?.(1, payload.length, performance.now() - startedAt)
  }

  /** Each piece has the timeout of the connection's commands, and all of them together have one by their size. */
  async #sendPieces(jobId: string, payload: Buffer, { target }: QueueWriter): Promise<void> {
    const withinMs = this.#options.timeoutMs + (payload.length / PIECE_BYTES) * PIECE_MS
    const pieces = writeInPieces(target.redis, target.queue.keys.arriving(jobId), payload)
    try {
      await withDeadline(pieces, withinMs, 'redis did not take the pieces in time')
    } catch (cause) {
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }
}
