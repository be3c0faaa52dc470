import type { Redis } from 'ioredis'
import { RECEIPT_KIND_OF_QUEUE } from '../../schemas/queues/names.ts'
import { BufferPool } from '../../shared/memory/buffer-pool.ts'
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
import type { ReceiptIssuer } from './receipt-issuer.ts'
import { setInPlace } from './redis-transaction.ts'

/** Accepts frames one by one, where Redis decides whether a frame is accepted. */
export interface ConditionalCommit {
  /**
   * Runs the condition and enqueues the frame if the condition accepts it. Copies the frame, body included, before it
   * returns. Resolves once Redis has run the condition and, if it accepted, has the frame and its job on disk. Rejects
   * with a TransientError when Redis did not confirm: the frame is then enqueued once or not at all.
   */
  commit(frame: PayloadFrame, condition: Condition): Promise<Committed>
  /** Resolves when nothing is in flight. */
  drain(): Promise<void>
}

/** The outcome of a conditional commit. */
export interface Committed {
  /** The value that the condition's Lua returned. */
  readonly result: unknown
  /** The id of the frame's receipt. It is valid only if the condition accepted the frame. */
  readonly receiptId: string
}

/**
 * Lua that decides whether a frame is accepted. It calls `accept()` or `refuse()`, once, and returns a result. Its own
 * keys begin with KEYS[3], its own arguments with ARGV[2].
 */
export interface Condition {
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

/** The bounds of conditional commits. */
export interface ConditionalCommitOptions {
  /** A write that Redis has not confirmed by then fails. */
  readonly timeoutMs: number
  /** Called after each confirmed write. */
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** Precedes the Lua of every condition. KEYS payload, flow; ARGV bytes of the payload. */
const PRELUDE = `
local function accept()
  redis.call('HINCRBY', KEYS[2], 'acceptedPayloads', 1)
  redis.call('HINCRBY', KEYS[2], 'acceptedBytes', ARGV[1])
end
local function refuse() redis.call('UNLINK', KEYS[1]) end
`

/** Memory of payloads that is kept between commits. */
const IDLE_PAYLOAD_BYTES = 8 * 1024 * 1024

/**
 * Creates the conditional commits of one queue. Payload, script and job are one transaction. The payload is written
 * first and deleted again if the condition refuses it, because as an argument of the script it would be copied twice.
 * The job of a refused frame finds no payload and does nothing.
 */
export function createConditionalCommit(
  deps: { redis: Redis; queue: 'source-maps' | 'completions'; receipts: ReceiptIssuer; logger: Logger },
  options: ConditionalCommitOptions,
): ConditionalCommit {
  const { redis } = deps
  const keys = queueKeys(deps.queue)
  const writer = createJobWriter(deps)
  const memory = new BufferPool(IDLE_PAYLOAD_BYTES)
  const inFlight = new Set<Promise<unknown>>()

  async function write(payload: Buffer, condition: Condition): Promise<unknown> {
    const startedAt = performance.now()
    const jobId = newJobId()
    const names = [keys.payload(jobId), keys.flow, ...condition.keys]
    const replies = writer.write(jobId, { payloads: 1, bytes: payload.length }, () => [
      setInPlace(redis, keys.payload(jobId), payload),
      redis.eval(PRELUDE + condition.lua, names.length, ...names, payload.length, ...condition.args),
    ])
    try {
      const [, result] = await withDeadline(replies, options.timeoutMs, 'redis did not confirm in time')
      memory.giveBack(payload)
      options.onCommit?.(1, payload.length, performance.now() - startedAt)
      return result
    } catch (cause) {
      writer.reconnect()
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }

  return {
    commit(frame, condition) {
      if (!writer.isUsable) return Promise.reject(new TransientError('redis is not connected'))
      if (!deps.receipts.isReady) return Promise.reject(new TransientError('the secret of receipts is unknown'))
      const receipts = deps.receipts.open(RECEIPT_KIND_OF_QUEUE[deps.queue], frame.receivedAtMs)
      const receiptId = receipts.issue(frame)
      const payload = memory.take(PAYLOAD_HEADER_BYTES + frameBytes(frame))
      appendFrame(payload, beginPayload(payload), frame, receipts.receipt)
      const written = write(payload, condition).finally(() => inFlight.delete(written))
      inFlight.add(written)
      return written.then(result => ({ result, receiptId }))
    },
    async drain() {
      await Promise.allSettled(inFlight)
    },
  }
}
