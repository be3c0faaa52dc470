import { type Job, type JobType, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { type AlertEvent, alertEventSchema } from '../../schemas/http/alerts/events.ts'
import { DELIVERY_ID } from '../../schemas/records/alerts.ts'
import { DAY_S } from '../../schemas/units.ts'
import { DIRECTORY_ROOT, parseRecord } from '../../shared/directory/record.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

/** Prefix of the keys of BullMQ in the Redis of the directory. */
export const DELIVERIES_PREFIX = `${DIRECTORY_ROOT}:upkeep`
/** Name of the queue. */
export const DELIVERIES = 'deliveries'
/** Deliveries that are read at once. */
const PAGE = 100
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

/** A delivery that is kept, and how far it is. */
interface KeptDelivery {
  readonly delivery: DeliveryJob
  readonly state: 'waiting' | 'delivered' | 'failed'
  /** When a waiting one is due, in Unix ms. Undefined if it is due now. */
  readonly nextMs?: number | undefined
}

/** The queue of deliveries. */
export interface DeliveryQueue {
  /** Adds deliveries. One that waits already, by its id, is left alone. */
  add(deliveries: readonly DeliveryJob[]): Promise<void>
  /** Returns a delivery of a workspace, or undefined if it is not kept. */
  find(workspaceId: string, id: string): Promise<KeptDelivery | undefined>
  /** Makes a delivery due now that waits or was not accepted. Changes none that was delivered or is not kept. */
  replay(workspaceId: string, id: string, nowMs: number): Promise<void>
  /**
   * Removes events from the deliveries of a workspace, in whatever state, and deliveries without any other event. `onStep` runs
   * between two steps. Throws a TransientError while one is being sent that has no other.
   */
  forget(workspaceId: string, isForgotten: (event: AlertEvent) => boolean, onStep: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** Removes events from a delivery, or the delivery if it has no other. */
async function forgetEvents(job: Job<DeliveryJob>, isForgotten: (event: AlertEvent) => boolean): Promise<void> {
  const [first, ...others] = job.data.events.filter(event => !isForgotten(event))
  if (first !== undefined) return job.updateData({ ...job.data, events: [first, ...others] })
  await job.remove().catch(cause => {
    throw new TransientError('a delivery that names the person is being sent', { cause })
  })
}

/** Opens the queue on a connection to the Redis of the directory. */
export function openDeliveryQueue(redis: Redis): DeliveryQueue {
  return new JobsOfDeliveries(redis)
}

class JobsOfDeliveries implements DeliveryQueue {
  readonly #queue: Queue<DeliveryJob>

  constructor(redis: Redis) {
    this.#queue = new Queue<DeliveryJob>(DELIVERIES, { connection: redis, prefix: DELIVERIES_PREFIX })
    // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
    this.#queue.on('error', () => {})
  }

  async add(deliveries: readonly DeliveryJob[]): Promise<void> {
    await this.#queue.addBulk(
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
  }

  async find(workspaceId: string, id: string): Promise<KeptDelivery | undefined> {
    const job = await this.#jobOf(workspaceId, id)
    if (job === undefined) return undefined
    const delivery = parseRecord(id, JSON.stringify(job.data), deliveryJobSchema)
    const state = await job.getState()
    if (state === 'completed') return { delivery, state: 'delivered' }
    if (state === 'failed') return { delivery, state: 'failed' }
    const isLater = state === 'delayed' && typeof job.progress === 'number'
    return { delivery, state: 'waiting', ...(isLater && { nextMs: job.progress as number }) }
  }

  async replay(workspaceId: string, id: string, nowMs: number): Promise<void> {
    const job = await this.#jobOf(workspaceId, id)
    const state = await job?.getState()
    if (job === undefined || (state !== 'failed' && state !== 'delayed')) return
    await job.updateProgress(nowMs)
    const changing = state === 'failed' ? job.retry('failed') : job.promote()
    await changing.catch(async error => {
      // Another one has replayed it, or its attempt has begun.
      if ((await job.getState()) === state) throw error
    })
  }

  async forget(
    workspaceId: string,
    isForgotten: (event: AlertEvent) => boolean,
    onStep: () => Promise<void>,
  ): Promise<void> {
    for (let found = -1; found !== 0; ) {
      found = 0
      // In the order in which a delivery has them. One that goes back is found in the next pass.
      for (const state of ['delayed', 'waiting', 'active', 'failed', 'completed'] as const) {
        for await (const job of this.#jobsIn(state, onStep)) {
          if (job.data.workspaceId !== workspaceId || !job.data.events.some(isForgotten)) continue
          found++
          await forgetEvents(job, isForgotten)
        }
      }
    }
  }

  close(): Promise<void> {
    return this.#queue.close()
  }

  async #jobOf(workspaceId: string, id: string): Promise<Job<DeliveryJob> | undefined> {
    // Other texts are the names of other keys.
    const job = DELIVERY_ID.test(id) ? await this.#queue.getJob(id) : undefined
    return job?.data.workspaceId === workspaceId ? job : undefined
  }

  /** Returns the jobs of a state, in pages. A page that has changed meanwhile may lack some. */
  async *#jobsIn(state: JobType, onStep: () => Promise<void>): AsyncGenerator<Job<DeliveryJob>> {
    for (let begin = 0; ; begin += PAGE) {
      await onStep()
      const page = await this.#queue.getJobs([state], begin, begin + PAGE - 1, true)
      yield* page.filter(job => job?.data !== undefined)
      if (page.length < PAGE) return
    }
  }
}
