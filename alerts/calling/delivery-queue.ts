import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { alertEventSchema } from '../../schemas/http/alerts/events.ts'
import { DAY_S } from '../../schemas/units.ts'
import { DIRECTORY_ROOT } from '../../shared/directory/record.ts'

/** Prefix of the keys of BullMQ in the Redis of the directory. */
export const DELIVERIES_PREFIX = `${DIRECTORY_ROOT}:upkeep`
/** Name of the queue. */
export const DELIVERIES = 'deliveries'
/** Attempts of a delivery (`retry-table.ts`). */
const ATTEMPTS = 10

/** A delivery that waits: events for one receiver. It has no secret; the receiver is read when it is sent. */
export const deliveryJobSchema = z.object({
  version: z.literal(1),
  id: z.string(),
  workspaceId: z.string(),
  receiverId: z.string(),
  ruleName: z.string(),
  events: z.tuple([alertEventSchema], alertEventSchema),
})
/** A delivery that waits. */
export type DeliveryJob = z.infer<typeof deliveryJobSchema>

/** The queue of deliveries. */
export interface DeliveryQueue {
  /** Adds deliveries. One that waits already, by its id, is left alone. */
  add(deliveries: readonly DeliveryJob[]): Promise<void>
  close(): Promise<void>
}

/** Opens the queue on a connection to the Redis of the directory. */
export function openDeliveryQueue(redis: Redis): DeliveryQueue {
  const queue = new Queue<DeliveryJob>(DELIVERIES, { connection: redis, prefix: DELIVERIES_PREFIX })
  // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
  queue.on('error', () => {})
  return {
    async add(deliveries) {
      await queue.addBulk(
        deliveries.map(data => ({
          name: 'deliver',
          data,
          opts: {
            jobId: data.id,
            attempts: ATTEMPTS,
            backoff: { type: 'custom' },
            // Its id is known for a day, so that a repetition is not sent again.
            removeOnComplete: { age: DAY_S, count: 10_000 },
            removeOnFail: { age: 30 * DAY_S, count: 10_000 },
          },
        })),
      )
    },
    close: () => queue.close(),
  }
}
