import type { Redis } from 'ioredis'
import { type IngestQueue, RECEIPT_KIND_OF_QUEUE } from '../../schemas/queues/names.ts'
import {
  appendFrame,
  beginPayload,
  frameBytes,
  PAYLOAD_HEADER_BYTES,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import { newJobId, queueKeys } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createJobWriter } from './job-writer.ts'
import type { OpenCommit, ReceiptIssuer } from './receipt-issuer.ts'
import { setInPlace } from './redis-transaction.ts'

export interface GroupCommit {
  /** Copies the frame before it returns, body included. Throws a TransientError when nothing can be enqueued now. */
  enqueue(frame: PayloadFrame): EnqueuedFrame
  /** Resolves when nothing waits and no commit is in flight. */
  drain(): Promise<void>
}

export interface EnqueuedFrame {
  readonly receiptId: string
  /**
   * Resolves once Redis has the frame and its job on disk. Rejects with a TransientError when that could not be confirmed;
   * the frame may then be stored or not, but never twice.
   */
  readonly confirmed: Promise<void>
}

export interface GroupCommitOptions {
  /** A commit takes what waits up to these bounds, and always at least one frame. */
  readonly maxCommitBytes: number
  readonly maxCommitFrames: number
  /** A request that is not confirmed so long after it came fails, with all that came after it; `commitTimeoutMs` for large ones. */
  readonly timeoutMs: number
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** A whole source map alone is larger than this: its client waits for a worker anyway. */
const LARGE_COMMIT_BYTES = 20 * 1024 * 1024
const LARGE_COMMIT_BYTES_PER_MS = 32 * 1024

/** What a commit of this size may take: 64 MiB took 250 to 450 ms on a quiet machine, and over 800 on a busy one. */
export function commitTimeoutMs(timeoutMs: number, bytes: number): number {
  return timeoutMs + Math.max(0, bytes - LARGE_COMMIT_BYTES) / LARGE_COMMIT_BYTES_PER_MS
}

/** What a commit gets even when its requests had to wait for slow ones before it. */
const MIN_COMMIT_MS = 100
/** One that fills, one on its way, and those of a burst of large bodies: new ones would wait for the collector. */
const SPARE_BUFFERS = 4

/** A payload while requests are added to it, and until its commit is confirmed. */
interface Group {
  readonly buffer: Buffer
  readonly receipts: OpenCommit
  bytes: number
  frames: number
  readonly since: number
  /** Shared by all its requests: they settle together. */
  readonly confirmed: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: TransientError) => void
}

/**
 * Writes many requests with one transaction: a frame waits only while a commit is in flight, and the next commit takes
 * all that waited. So an idle edge adds no latency, and a busy one shares each fsync and each job among hundreds of
 * requests, without a timer. The first commit after a pause takes what came in the same turn of the event loop: without
 * that it would hold one frame, and all that came with it would wait for the next (64 clients where fsync is fast: 36
 * frames a commit instead of 25).
 *
 * Frames are copied into their payload as they come, so that a body is copied once from the socket to the payload, and a
 * commit is ready to go when the one before it is confirmed.
 */
export function createGroupCommit(
  deps: { redis: Redis; queue: IngestQueue; receipts: ReceiptIssuer; logger: Logger },
  options: GroupCommitOptions,
): GroupCommit {
  const { redis } = deps
  const keys = queueKeys(deps.queue)
  const writer = createJobWriter(deps)
  const bufferBytes = options.maxCommitBytes + PAYLOAD_HEADER_BYTES
  /** In the order of arrival; the last one may be added to. */
  let waiting: Group[] = []
  let inFlight = false
  let onIdle: (() => void)[] = []
  /** V8 answers half a megabyte of new buffers per commit with full collections: one fills while one is on its way. */
  const spareBuffers: Buffer[] = []

  function groupFor(bytes: number, arrivedAtMs: number): Group {
    const last = waiting.at(-1)
    const fits = last !== undefined && last.bytes + bytes <= last.buffer.length
    if (fits && last.frames < options.maxCommitFrames) return last
    const group = openGroup(PAYLOAD_HEADER_BYTES + bytes, arrivedAtMs)
    waiting.push(group)
    return group
  }

  function openGroup(leastBytes: number, arrivedAtMs: number): Group {
    const receipts = deps.receipts.open(RECEIPT_KIND_OF_QUEUE[deps.queue], arrivedAtMs)
    const buffer =
      leastBytes > bufferBytes
        ? Buffer.allocUnsafeSlow(leastBytes)
        : (spareBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes))
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

  async function commitAll(): Promise<void> {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      try {
        // Counted from the arrival of the oldest: it may have waited for a commit that took nearly as long itself.
        const waitedMs = performance.now() - group.since
        const timeoutMs = Math.max(MIN_COMMIT_MS, commitTimeoutMs(options.timeoutMs, group.bytes) - waitedMs)
        await withDeadline(commit(group), timeoutMs, 'redis did not confirm in time')
        if (group.buffer.length === bufferBytes && spareBuffers.length < SPARE_BUFFERS) spareBuffers.push(group.buffer)
        group.resolve()
      } catch (cause) {
        // What waits would meet the same store, and its clients have a second altogether: all fail now.
        const error = new TransientError('the queue could not confirm the write', { cause })
        const failed = [group, ...waiting]
        waiting = []
        for (const { reject } of failed) reject(error)
        writer.reconnect()
      }
    }
    inFlight = false
    for (const resolve of onIdle) resolve()
    onIdle = []
  }

  async function commit({ buffer, bytes, frames }: Group): Promise<void> {
    const startedAt = performance.now()
    const jobId = newJobId()
    await writer.write(jobId, { payloads: frames, bytes }, () => [
      setInPlace(redis, keys.payload(jobId), buffer.subarray(0, bytes)),
      redis.hincrby(keys.flow, 'acceptedPayloads', frames),
      redis.hincrby(keys.flow, 'acceptedBytes', bytes),
    ])
    options.onCommit?.(frames, bytes, performance.now() - startedAt)
  }

  return {
    enqueue(frame) {
      if (!writer.isUsable) throw new TransientError('redis is not connected')
      if (!deps.receipts.isReady) throw new TransientError('receipts cannot be given yet')
      const group = groupFor(frameBytes(frame), frame.receivedAtMs)
      const receiptId = group.receipts.issue(frame)
      group.bytes = appendFrame(group.buffer, group.bytes, frame, group.receipts.receipt)
      group.frames++
      if (!inFlight) {
        inFlight = true
        setImmediate(() => void commitAll())
      }
      return { receiptId, confirmed: group.confirmed }
    },
    drain() {
      if (!inFlight) return Promise.resolve()
      return new Promise(resolve => onIdle.push(resolve))
    },
  }
}
