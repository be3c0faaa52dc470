import type { Redis } from 'ioredis'
import type { BufferPool } from '../../shared/memory/buffer-pool.ts'
import { LARGE_FRAME_BYTES, writeInPieces } from '../../shared/queue/large-values.ts'
import {
  appendFrame,
  beginPayload,
  frameBytes,
  PAYLOAD_HEADER_BYTES,
  type PayloadFrame,
} from '../../shared/queue/payload-frame.ts'
import { LANES, newJobId } from '../../shared/queue/queue.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Placement } from '../admission/queue-shares.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import { type CommitOutcome, type Condition, FencedCommit } from './fenced-commit.ts'
import type { ReceiptIssuer } from './receipt-issuer.ts'

/** Accepts frames one by one, where Redis decides whether a frame is accepted. */
export interface ConditionalCommit {
  /**
   * Runs the condition and enqueues the frame if the condition accepts it. Copies the frame, body included, before it
   * returns. Resolves once Redis has run the condition and, if it accepted, has the frame and its job on disk. Rejects
   * with a TransientError when Redis did not confirm: the frame is then enqueued once or not at all.
   */
  commit(frame: PayloadFrame, place: Placement, condition: Condition): Promise<Committed>
  /** Resolves when nothing is in flight. */
  drain(): Promise<void>
}

/** The outcome of a conditional commit. */
interface Committed extends CommitOutcome {
  /** The id of the frame's receipt. It is valid only if the condition accepted the frame. */
  readonly receiptId: Buffer
}

/** The collaborators of conditional commits. */
interface ConditionalCommitDeps {
  readonly redis: Redis
  readonly queue: RedisQueue & { readonly name: 'source-maps' | 'completions' }
  readonly receipts: ReceiptIssuer
  readonly clock: RedisClock
  readonly logger: Logger
  /** The memory of payloads. */
  readonly memory: BufferPool
  /** The number of replicas that must have a commit before it is confirmed. None by default. */
  readonly minReplicas?: number
}

/** The bounds of conditional commits. */
interface ConditionalCommitOptions {
  /** A write that Redis has not confirmed by then fails. Each piece of a large payload has this time too. */
  readonly timeoutMs: number
  /** Returns the priority of a bulk job whose surface has this much (`SurfaceShare.backlog`). */
  readonly priorityOf: (backlog: number) => number
  /** Called after each confirmed write. */
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/**
 * Creates the conditional commits of one queue. Payload, script and job are one transaction. The payload is written
 * first and deleted again if the condition refuses it, because as an argument of the script it would be copied twice.
 * The job of a refused frame finds no payload and does nothing.
 */
export function createConditionalCommit(
  deps: ConditionalCommitDeps,
  options: ConditionalCommitOptions,
): ConditionalCommit {
  const { name, keys } = deps.queue
  const commits = Object.fromEntries(LANES.map(lane => [lane, new FencedCommit({ ...deps, lane })]))
  const { memory } = deps
  const inFlight = new Set<Promise<unknown>>()

  async function write(
    payload: Buffer,
    arrivedAtMs: number,
    { share, cost, lane }: Placement,
    condition: Condition,
  ): Promise<CommitOutcome> {
    const startedAt = performance.now()
    const jobId = newJobId()
    const isLarge = payload.length > LARGE_FRAME_BYTES
    if (isLarge) await sendPieces(jobId, payload)
    const content = {
      payload: isLarge ? undefined : payload,
      bytes: payload.length,
      frames: 1,
      arrivedAtMs,
      surfaces: new Map([[share.member, { cost, requests: 1 }]]),
      priority: lane === 'bulk' ? options.priorityOf(share.backlog) : 0,
    }
    const outcome = await (commits[lane] as FencedCommit).write(jobId, content, options.timeoutMs, condition)
    memory.giveBack(payload)
    options.onCommit?.(1, payload.length, performance.now() - startedAt)
    return outcome
  }

  async function sendPieces(jobId: string, payload: Buffer): Promise<void> {
    try {
      await writeInPieces(deps.redis, keys.arriving(jobId), payload)
    } catch (cause) {
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }

  return {
    commit(frame, place, condition) {
      if (!(commits[place.lane] as FencedCommit).isUsable) {
        return Promise.reject(new TransientError('redis is not connected'))
      }
      if (!deps.receipts.isReady) return Promise.reject(new TransientError('the secret of receipts is unknown'))
      const receipts = deps.receipts.open(name, frame.receivedAtMs)
      const receiptId = Buffer.from(receipts.idOf(0, receipts.issue(frame)))
      const payload = memory.take(PAYLOAD_HEADER_BYTES + frameBytes(frame))
      appendFrame(payload, beginPayload(payload), frame, receipts.receipt, place.cost)
      const written = write(payload, frame.receivedAtMs, place, condition).finally(() => inFlight.delete(written))
      inFlight.add(written)
      return written.then(outcome => ({ ...outcome, receiptId }))
    },
    async drain() {
      await Promise.allSettled(inFlight)
    },
  }
}
