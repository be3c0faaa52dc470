import type { Redis } from 'ioredis'
import { DAY_S, HOUR_MS } from '../../schemas/units.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import { conditionOf } from '../messages/message.ts'
import type { DeliveryJob } from './delivery-queue.ts'

/** A delivery that may have to wait for another one. */
type Ordered = Pick<DeliveryJob, 'id' | 'receiverId' | 'events'>

/** Later events of a finding wait for as long for one that cannot be delivered. */
const KEPT_MS = HOUR_MS
/** Longer than a delivery is repeated. */
const EXPIRES_S = 4 * DAY_S

/**
 * Keeps the order of the events of a finding, or of a measured condition, for each receiver. A delivery joins the others before it
 * is queued, is sent when it is the first of them, and leaves once it has ended. Messages about several events have no order.
 */
export class OrderOfFindings {
  readonly #redis: Redis
  readonly #keptMs: number

  constructor(redis: Redis, keptMs = KEPT_MS) {
    this.#redis = redis
    this.#keptMs = keptMs
  }

  /** Adds deliveries behind those that have not ended. One that is there already keeps its place. */
  async join(deliveries: readonly Ordered[], nowMs: number): Promise<void> {
    const steps = this.#redis.multi()
    for (const [i, delivery] of deliveries.entries()) {
      const key = keyOf(delivery)
      // Thousandths keep the order of those that are added at once.
      if (key !== undefined) steps.zadd(key, 'NX', nowMs + i / 1_000, delivery.id).expire(key, EXPIRES_S)
    }
    await steps.exec()
  }

  /** Returns whether a delivery may be sent: it is the first, or those before it have waited too long. */
  async isFirst(delivery: Ordered, nowMs: number): Promise<boolean> {
    const key = keyOf(delivery)
    if (key === undefined) return true
    const [first = delivery.id] = await this.#redis.zrangebyscore(key, nowMs - this.#keptMs, '+inf', 'LIMIT', 0, 1)
    if (first === delivery.id) return true
    const joined = await this.#redis.zscore(key, delivery.id)
    return joined === null || Number(joined) < nowMs - this.#keptMs
  }

  /** Takes a delivery out that has ended. */
  async leave(delivery: Ordered): Promise<void> {
    const key = keyOf(delivery)
    if (key !== undefined) await this.#redis.zrem(key, delivery.id)
  }
}

function keyOf({ receiverId, events }: Ordered): string | undefined {
  const [event] = events
  if (events.length > 1 || event.type === 'test') return undefined
  const of = 'finding' in event.data ? event.data.finding.id : conditionOf(event)
  return upkeepKeys.order(`${receiverId}/${of}`)
}
