import { createIORedisClient, Job, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob, QueueName } from '../schemas/jobs.ts'
import { TransientError } from '../shared/errors.ts'
import { withDeadline } from '../shared/lifecycle.ts'
import type { Logger } from '../shared/logger.ts'
import { encodePayload, frameBytes, PAYLOAD_HEADER_BYTES, type PayloadFrame } from '../shared/payload-frame.ts'
import { JOB_OPTIONS, newJobId, openQueue, queueKeys } from '../shared/queue.ts'
import { runTransaction, setInPlace } from './redis-transaction.ts'

export interface GroupCommit {
  /**
   * Resolves once Redis has the frame and its job on disk. Rejects with a TransientError when that could not be
   * confirmed; the frame may then be stored or not, but never twice.
   */
  enqueue(frame: PayloadFrame): Promise<void>
  /** Resolves when nothing waits and no commit is in flight. */
  drain(): Promise<void>
}

export interface GroupCommitOptions {
  /** A commit takes what waits up to these bounds, and always at least one frame. */
  readonly maxCommitBytes: number
  readonly maxCommitFrames: number
  /** A request that is not confirmed so long after it came fails, with all that came after it. */
  readonly timeoutMs: number
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** What a commit gets even when its requests had to wait for slow ones before it. */
const MIN_COMMIT_MS = 100

interface Waiting {
  readonly frame: PayloadFrame
  readonly since: number
  readonly resolve: () => void
  readonly reject: (error: TransientError) => void
}

/**
 * Writes many requests with one transaction: a frame waits only while a commit is in flight, and the next commit takes
 * all that waited. So an idle edge adds no latency, and a busy one shares each fsync and each job among hundreds of
 * requests, without a timer. The first commit after a pause takes what came in the same turn of the event loop: without
 * that it would hold one frame, and all that came with it would wait for the next (64 clients where fsync is fast: 36
 * frames a commit instead of 25).
 */
export function createGroupCommit(
  deps: { redis: Redis; queue: QueueName; logger: Logger },
  options: GroupCommitOptions,
): GroupCommit {
  const { redis, logger } = deps
  const keys = queueKeys(deps.queue)
  const bull = createIORedisClient(redis)
  let queue: Queue<CommitJob> | undefined
  let waiting: Waiting[] = []
  let inFlight = false
  let usable = false
  let onIdle: (() => void)[] = []
  /**
   * Payloads are built here, one after the other. V8 counts the memory of buffers, and answers half a megabyte per commit
   * with full collections: measured with 8 KB bodies, 17.8 µs of CPU per request and 198 MB instead of 16.3 µs and 174 MB.
   */
  let buffer: Buffer | undefined

  if (redis.status === 'ready') open()
  redis.on('ready', open)
  redis.on('close', () => {
    usable = false
  })

  /** BullMQ loads its scripts on a ready connection, once; a loss in the middle of that is repaired by the next "ready". */
  function open(): void {
    usable = queue !== undefined
    if (usable) return
    const opened = openQueue(redis, deps.queue)
    opened.on('error', error => logger.debug({ error: error.message }, 'queue error'))
    opened.waitUntilReady().then(
      () => {
        queue = opened
        usable = redis.status === 'ready'
      },
      () => void opened.close(),
    )
  }

  function takeWaiting(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const { frame } of waiting) {
      bytes += frameBytes(frame)
      if (count > 0 && (bytes > options.maxCommitBytes || count === options.maxCommitFrames)) break
      count++
    }
    if (count === waiting.length) {
      const all = waiting
      waiting = []
      return all
    }
    return waiting.splice(0, count)
  }

  async function commitAll(): Promise<void> {
    while (waiting.length > 0) {
      const taken = takeWaiting()
      const waitedMs = performance.now() - (taken[0]?.since ?? 0)
      try {
        // Counted from the arrival of the oldest: it may have waited for a commit that took nearly as long itself.
        const timeoutMs = Math.max(MIN_COMMIT_MS, options.timeoutMs - waitedMs)
        await withDeadline(commit(taken.map(entry => entry.frame)), timeoutMs, 'redis did not confirm in time')
        for (const { resolve } of taken) resolve()
      } catch (cause) {
        // What waits would meet the same store, and its clients have a second altogether: all fail now.
        const error = new TransientError('the queue could not confirm the write', { cause })
        const rest = waiting
        waiting = []
        for (const { reject } of taken) reject(error)
        for (const { reject } of rest) reject(error)
        // A stalled connection would hold up the next commit as long; a new one tells at once whether Redis is there.
        if (usable) redis.disconnect(true)
        usable = false
        buffer = undefined // the old connection may still be reading it
      }
    }
    inFlight = false
    for (const resolve of onIdle) resolve()
    onIdle = []
  }

  async function commit(frames: PayloadFrame[]): Promise<void> {
    if (queue === undefined) throw new TransientError('the queue is not open yet')
    const startedAt = performance.now()
    buffer ??= Buffer.allocUnsafeSlow(options.maxCommitBytes + PAYLOAD_HEADER_BYTES)
    const payload = encodePayload(frames, buffer)
    const jobId = newJobId()
    const job = new Job<CommitJob>(
      queue,
      'commit',
      { payloads: frames.length, bytes: payload.length },
      JOB_OPTIONS,
      jobId,
    )
    await runTransaction(redis, () => [
      setInPlace(redis, keys.payload(jobId), payload),
      redis.hincrby(keys.flow, 'acceptedPayloads', frames.length),
      redis.hincrby(keys.flow, 'acceptedBytes', payload.length),
      job.addJob(bull),
    ])
    options.onCommit?.(frames.length, payload.length, performance.now() - startedAt)
  }

  return {
    enqueue(frame) {
      if (!usable) return Promise.reject(new TransientError('redis is not connected'))
      return new Promise((resolve, reject) => {
        waiting.push({ frame, since: performance.now(), resolve, reject })
        if (inFlight) return
        inFlight = true
        setImmediate(() => void commitAll())
      })
    },
    drain() {
      if (!inFlight) return Promise.resolve()
      return new Promise(resolve => onIdle.push(resolve))
    },
  }
}
