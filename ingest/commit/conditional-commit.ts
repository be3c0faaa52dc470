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

export interface ConditionalCommit {
  /**
   * Copies the frame before it returns, body included. Resolves with the answer of the condition, and the id of the
   * receipt that the frame has if it was accepted, once Redis has run it and has the frame, if so, on disk with its job.
   * Rejects with a TransientError when that could not be confirmed; it may have happened or not, but never twice.
   */
  commit(frame: PayloadFrame, condition: Condition): Promise<Committed>
  /** Resolves when nothing is in flight. */
  drain(): Promise<void>
}

export interface Committed {
  readonly answer: unknown
  readonly receiptId: string
}

/**
 * Lua that decides whether a frame is accepted. It calls `accept()` or `refuse()`, once, and returns an answer. Its own
 * keys begin with KEYS[3], its own arguments with ARGV[2].
 */
export interface Condition {
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

export interface ConditionalCommitOptions {
  readonly timeoutMs: number
  readonly onCommit?: (frames: number, bytes: number, durationMs: number) => void
}

/** KEYS payload, flow; ARGV bytes of the payload. */
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
 * Accepts frames one by one where Redis has to decide: payload, script and job are one transaction. The payload is put
 * first and taken back on a refusal: as an argument of the script it would be copied twice on its way. The job that a
 * refusal leaves finds no payload, and does nothing.
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

  async function run(payload: Buffer, condition: Condition): Promise<unknown> {
    const startedAt = performance.now()
    const jobId = newJobId()
    const names = [keys.payload(jobId), keys.flow, ...condition.keys]
    const replies = writer.write(jobId, { payloads: 1, bytes: payload.length }, () => [
      setInPlace(redis, keys.payload(jobId), payload),
      redis.eval(PRELUDE + condition.lua, names.length, ...names, payload.length, ...condition.args),
    ])
    try {
      const [, answer] = await withDeadline(replies, options.timeoutMs, 'redis did not confirm in time')
      memory.giveBack(payload)
      options.onCommit?.(1, payload.length, performance.now() - startedAt)
      return answer
    } catch (cause) {
      writer.reconnect()
      throw new TransientError('the queue could not confirm the write', { cause })
    }
  }

  return {
    commit(frame, condition) {
      if (!writer.isUsable) return Promise.reject(new TransientError('redis is not connected'))
      if (!deps.receipts.isReady) return Promise.reject(new TransientError('receipts cannot be given yet'))
      const receipts = deps.receipts.open(RECEIPT_KIND_OF_QUEUE[deps.queue], frame.receivedAtMs)
      const receiptId = receipts.issue(frame)
      const payload = memory.take(PAYLOAD_HEADER_BYTES + frameBytes(frame))
      appendFrame(payload, beginPayload(payload), frame, receipts.receipt)
      const answered = run(payload, condition).finally(() => inFlight.delete(answered))
      inFlight.add(answered)
      return answered.then(answer => ({ answer, receiptId }))
    },
    async drain() {
      await Promise.allSettled(inFlight)
    },
  }
}
