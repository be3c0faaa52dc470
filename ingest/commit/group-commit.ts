import type { Redis } from 'ioredis'
import { type IngestQueue, RECEIPT_KIND_OF_QUEUE } from '../../schemas/queues/names.ts'
import {
  appendFrame,
  beginPayload,
  frameBytes,
  PAYLOAD_HEADER_BYTES,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import { newJobId, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createJobWriter, type JobWriter } from './job-writer.ts'
import type { OpenCommit, ReceiptIssuer } from './receipt-issuer.ts'
import { setInPlace } from './redis-transaction.ts'

/** A frame that waits for its commit, or whose commit is in flight. */
export interface EnqueuedFrame {
  /** The id of the receipt that the client gets. */
  readonly receiptId: string
  /**
   * Resolves once Redis has the frame and its job on disk. Rejects with a TransientError when Redis did not confirm the
   * write. The frame is then stored once or not at all.
   */
  readonly confirmed: Promise<void>
}

/** The collaborators of a group commit. `redis` is a producer's connection (`connectProducer`). */
export interface GroupCommitDeps {
  readonly redis: Redis
  readonly queue: IngestQueue
  readonly receipts: ReceiptIssuer
  readonly logger: Logger
}

/** The bounds of a group commit. */
export interface GroupCommitOptions {
  /** The largest payload of one commit, in bytes. A larger frame is committed alone. */
  readonly maxCommitBytes: number
  /** The most frames of one commit. */
  readonly maxCommitFrames: number
  /**
   * A frame that is not confirmed within this time of its arrival fails, with all frames that arrived after it. Large
   * commits get more time (`commitTimeoutMs`).
   */
  readonly timeoutMs: number
  /** Called after each confirmed commit. */
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** Only a commit with a whole source map is larger than this, and its client waits for a worker anyway. */
const LARGE_COMMIT_BYTES = 20 * 1024 * 1024
const LARGE_COMMIT_BYTES_PER_MS = 32 * 1024

/**
 * Returns how long a commit of this size may take. Measured: 64 MiB took 250 to 450 ms on a quiet machine, and over
 * 800 ms on a busy one.
 */
export function commitTimeoutMs(timeoutMs: number, bytes: number): number {
  return timeoutMs + Math.max(0, bytes - LARGE_COMMIT_BYTES) / LARGE_COMMIT_BYTES_PER_MS
}

/** The least time that a commit gets, even if its frames waited for slow commits before it. */
const MIN_COMMIT_MS = 100

/**
 * Buffers that are kept for later commits: one that is filled, one in flight, and some for a burst of large bodies.
 * Beyond these, new buffers would be left to the garbage collector.
 */
const SPARE_BUFFERS = 4

/** A payload from its first frame until its commit is confirmed. */
interface Group {
  readonly buffer: Buffer
  readonly receipts: OpenCommit
  bytes: number
  frames: number
  /** When the first frame arrived, on the clock of `performance.now`. */
  readonly since: number
  /** Shared by all frames of the group, because they are stored or refused together. */
  readonly confirmed: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: TransientError) => void
}

/**
 * Writes many frames with one Redis transaction. A frame waits only while a commit is in flight, and the next commit
 * takes all frames that waited. So an idle edge adds no latency, and a busy edge shares each fsync and each job among
 * hundreds of requests, without a timer.
 *
 * The first commit after a pause starts at the end of the current turn of the event loop, so that it takes all frames
 * of that turn. Otherwise it would contain one frame, and the others would wait for the next commit. Measured with 64
 * clients and a fast fsync: 36 frames a commit instead of 25.
 *
 * Each frame is copied into its payload when it arrives. So a body is copied once between the socket and the payload,
 * and the next commit is ready to go as soon as the current one is confirmed.
 */
export class GroupCommit {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #writer: JobWriter
  readonly #receipts: ReceiptIssuer
  readonly #receiptKind: (typeof RECEIPT_KIND_OF_QUEUE)[IngestQueue]
  readonly #options: GroupCommitOptions
  readonly #bufferBytes: number
  /** Groups in the order of arrival. Only the last one takes further frames. */
  #waiting: Group[] = []
  #inFlight = false
  #onIdle: (() => void)[] = []
  /** V8 reacts to half a megabyte of new buffers per commit with full collections, so buffers are used again. */
  readonly #spareBuffers: Buffer[] = []

  constructor(deps: GroupCommitDeps, options: GroupCommitOptions) {
    this.#redis = deps.redis
    this.#keys = queueKeys(deps.queue)
    this.#writer = createJobWriter(deps)
    this.#receipts = deps.receipts
    this.#receiptKind = RECEIPT_KIND_OF_QUEUE[deps.queue]
    this.#options = options
    this.#bufferBytes = options.maxCommitBytes + PAYLOAD_HEADER_BYTES
  }

  /**
   * Adds a frame to the next commit. Copies the frame, body included, before it returns. Throws a TransientError when
   * Redis is not connected or receipts cannot be issued.
   */
  enqueue(frame: PayloadFrame): EnqueuedFrame {
    if (!this.#writer.isUsable) throw new TransientError('redis is not connected')
    if (!this.#receipts.isReady) throw new TransientError('the secret of receipts is unknown')
    const group = this.#groupFor(frameBytes(frame), frame.receivedAtMs)
    const receiptId = group.receipts.issue(frame)
    group.bytes = appendFrame(group.buffer, group.bytes, frame, group.receipts.receipt)
    group.frames++
    if (!this.#inFlight) {
      this.#inFlight = true
      setImmediate(() => void this.#commitAll())
    }
    return { receiptId, confirmed: group.confirmed }
  }

  /** Resolves when no frame waits and no commit is in flight. */
  drain(): Promise<void> {
    if (!this.#inFlight) return Promise.resolve()
    return new Promise(resolve => this.#onIdle.push(resolve))
  }

  #groupFor(bytes: number, arrivedAtMs: number): Group {
    const last = this.#waiting.at(-1)
    const fits = last !== undefined && last.bytes + bytes <= last.buffer.length
    if (fits && last.frames < this.#options.maxCommitFrames) return last
    const group = this.#openGroup(PAYLOAD_HEADER_BYTES + bytes, arrivedAtMs)
    this.#waiting.push(group)
    return group
  }

  #openGroup(leastBytes: number, arrivedAtMs: number): Group {
    const receipts = this.#receipts.open(this.#receiptKind, arrivedAtMs)
    const buffer =
      leastBytes > this.#bufferBytes
        ? Buffer.allocUnsafeSlow(leastBytes)
        : (this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(this.#bufferBytes))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    return {
      buffer,
      receipts,
      bytes: beginPayload(buffer),
      frames: 0,
      since: performance.now(),
      confirmed: promise,
      resolve,
      reject,
    }
  }

  async #commitAll(): Promise<void> {
    for (let group = this.#waiting.shift(); group !== undefined; group = this.#waiting.shift()) {
      try {
        // The time since the oldest arrival counts: the group may have waited for a commit that took nearly as long.
        const waitedMs = performance.now() - group.since
        const timeoutMs = Math.max(MIN_COMMIT_MS, commitTimeoutMs(this.#options.timeoutMs, group.bytes) - waitedMs)
        await withDeadline(this.#commit(group), timeoutMs, 'redis did not confirm in time')
        this.#keepBuffer(group.buffer)
        group.resolve()
      } catch (cause) {
        // The groups that wait would meet the same Redis, and their clients expect a reply within a second: all fail now.
        const error = new TransientError('the queue could not confirm the write', { cause })
        const failed = [group, ...this.#waiting]
        this.#waiting = []
        for (const { reject } of failed) reject(error)
        this.#writer.reconnect()
      }
    }
    this.#inFlight = false
    for (const resolve of this.#onIdle) resolve()
    this.#onIdle = []
  }

  async #commit({ buffer, bytes, frames }: Group): Promise<void> {
    const startedAt = performance.now()
    const jobId = newJobId()
    await this.#writer.write(jobId, { payloads: frames, bytes }, () => [
      setInPlace(this.#redis, this.#keys.payload(jobId), buffer.subarray(0, bytes)),
      this.#redis.hincrby(this.#keys.flow, 'acceptedPayloads', frames),
      this.#redis.hincrby(this.#keys.flow, 'acceptedBytes', bytes),
      this.#redis.zadd(this.#keys.pending, Date.now(), jobId),
    ])
    this.#options.onCommit?.(frames, bytes, performance.now() - startedAt)
  }

  #keepBuffer(buffer: Buffer): void {
    const isSpare = buffer.length === this.#bufferBytes && this.#spareBuffers.length < SPARE_BUFFERS
    if (isSpare) this.#spareBuffers.push(buffer)
  }
}
