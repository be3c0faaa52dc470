import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { wholePayload } from '../../shared/queue/packed-payload.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../shared/queue/queue.ts'

/** A payload in Redis, with the requests that have joined it. */
interface QueuedPayload {
  readonly jobId: string
  readonly frames: readonly PayloadFrame[]
}

/** Returns the payloads of a queue without closing them, in the order of their job ids. */
export async function queuedPayloads(redis: Redis, queue: QueueName): Promise<QueuedPayload[]> {
  const { payloadPrefix, joined } = queueKeys(queue)
  const jobIds = (await redis.keys(`${payloadPrefix}*`)).map(key => key.slice(payloadPrefix.length)).sort()
  return Promise.all(
    jobIds.map(async jobId => {
      const [payload, more] = await Promise.all([
        redis.getBuffer(payloadPrefix + jobId),
        redis.lrangeBuffer(joined(jobId), 0, -1),
      ])
      return { jobId, frames: payload === null ? [] : decodePayload(await wholePayload([payload, ...more])) }
    }),
  )
}

/** Returns the requests of all payloads of a queue. */
export async function queuedFrames(redis: Redis, queue: QueueName): Promise<PayloadFrame[]> {
  return (await queuedPayloads(redis, queue)).flatMap(({ frames }) => frames)
}

/** Deletes the payloads of a queue. */
export async function deletePayloads(redis: Redis, queue: QueueName): Promise<void> {
  const { payloadPrefix, joined, open } = queueKeys(queue)
  await redis.del(open, ...(await redis.keys(`${payloadPrefix}*`)), ...(await redis.keys(joined('*'))))
}
