import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

export interface Admission {
  /** INGEST_BACKPRESSURE when the queue is over its depth or bytes or Redis is nearly full; undefined lets the request in. */
  refuse(queue: QueueName): Problem | undefined
  /** Counts what this process lets in between two looks at the queue. */
  admitted(queue: QueueName, bytes: number): void
  /** Accepted and not yet done, as last seen. */
  backlog(queue: QueueName): { payloads: number; bytes: number }
  stop(): void
}

export interface AdmissionOptions {
  readonly maxPayloads: number
  readonly maxBytes: number
  readonly maxMemoryShare: number
  readonly pollMs: number
}

interface Flow {
  payloads: number
  bytes: number
  donePayloads: number
  doneBytes: number
  /** Moving averages, per second. */
  payloadRate: number
  byteRate: number
  seenAt: number
}

/** Follows the queues by polling their flow counters, so that admitting a request costs no round trip. */
export function createAdmission(
  deps: { redis: Redis; queues: readonly QueueName[]; logger: Logger; now?: () => number },
  options: AdmissionOptions,
): Admission {
  const { redis, logger, now = Date.now } = deps
  const flows = new Map<QueueName, Flow>(deps.queues.map(queue => [queue, emptyFlow()]))
  let memoryShare = 0
  let polling = false

  async function poll(): Promise<void> {
    if (polling || redis.status !== 'ready') return
    polling = true
    try {
      const [memory, ...counters] = await Promise.all([
        redis.info('memory'),
        ...deps.queues.map(queue => redis.hgetall(queueKeys(queue).flow)),
      ])
      memoryShare = usedShare(memory)
      for (const [i, queue] of deps.queues.entries()) follow(queue, counters[i] ?? {})
    } catch (error) {
      logger.debug({ error: describeError(error) }, 'the queues could not be looked at')
    } finally {
      polling = false
    }
  }

  function follow(queue: QueueName, counters: Record<string, string>): void {
    const flow = flowOf(queue)
    const at = now()
    const donePayloads = Number(counters.donePayloads ?? 0)
    const doneBytes = Number(counters.doneBytes ?? 0)
    const seconds = Math.max(0.001, (at - flow.seenAt) / 1_000)
    if (flow.seenAt > 0) {
      flow.payloadRate = average(flow.payloadRate, Math.max(0, donePayloads - flow.donePayloads) / seconds, seconds)
      flow.byteRate = average(flow.byteRate, Math.max(0, doneBytes - flow.doneBytes) / seconds, seconds)
    }
    flow.payloads = Number(counters.acceptedPayloads ?? 0) - donePayloads
    flow.bytes = Number(counters.acceptedBytes ?? 0) - doneBytes
    flow.donePayloads = donePayloads
    flow.doneBytes = doneBytes
    flow.seenAt = at
  }

  function flowOf(queue: QueueName): Flow {
    const flow = flows.get(queue)
    if (flow === undefined) throw new RangeError(`queue ${queue} is not followed`)
    return flow
  }

  const timer = setInterval(() => void poll(), options.pollMs)
  void poll()

  return {
    refuse(queue) {
      const flow = flowOf(queue)
      const overDepth = flow.payloads >= options.maxPayloads || flow.bytes >= options.maxBytes
      if (!overDepth && memoryShare < options.maxMemoryShare) return undefined
      return {
        code: 'INGEST_BACKPRESSURE',
        message: overDepth ? `the ${queue} queue is over its depth` : 'the queue store is nearly full',
        retryAfterSeconds: retryAfterSeconds(flow),
      }
    },
    admitted(queue, bytes) {
      const flow = flowOf(queue)
      flow.payloads++
      flow.bytes += bytes
    },
    backlog: queue => ({ payloads: flowOf(queue).payloads, bytes: flowOf(queue).bytes }),
    stop: () => clearInterval(timer),
  }
}

/** Backlog over measured drain rate, by payloads or by bytes, whichever takes longer; 1 to 60 (CONTRACT section 3). */
function retryAfterSeconds(flow: Flow): number {
  const seconds = Math.max(
    flow.payloads > 0 ? flow.payloads / flow.payloadRate : 0,
    flow.bytes > 0 ? flow.bytes / flow.byteRate : 0,
  )
  return Math.min(60, Math.max(1, Math.ceil(seconds)))
}

/** Half of the weight lies on the last five seconds. */
function average(old: number, value: number, seconds: number): number {
  const keep = 0.5 ** (seconds / 5)
  return old * keep + value * (1 - keep)
}

function usedShare(info: string): number {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0)
  const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0)
  return limit === 0 ? 0 : used / limit
}

function emptyFlow(): Flow {
  return { payloads: 0, bytes: 0, donePayloads: 0, doneBytes: 0, payloadRate: 0, byteRate: 0, seenAt: 0 }
}
