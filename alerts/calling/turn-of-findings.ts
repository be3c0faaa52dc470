import type { Redis } from 'ioredis'
import { upkeepKeys } from '../../shared/directory/record.ts'
import type { DeliveryJob } from './delivery-queue.ts'

/** A delivery that may have to wait for another one. */
type Ordered = Pick<DeliveryJob, 'id' | 'receiverId' | 'events'>

/**
 * Keeps the order of the events of a finding for each receiver: a delivery takes the turn of its finding, and passes it on once it
 * has ended. One that is repeated keeps it, for a bounded time.
 */
export class TurnOfFindings {
  readonly #redis: Redis
  readonly #keptMs: number

  constructor(redis: Redis, keptMs: number) {
    this.#redis = redis
    this.#keptMs = keptMs
  }

  /** Returns whether it is the turn of a delivery. Messages about several events have no order. */
  async take(delivery: Ordered, nowMs: number): Promise<boolean> {
    const field = fieldOf(delivery)
    if (field === undefined) return true
    const own = `${delivery.id} ${nowMs}`
    if ((await this.#redis.hsetnx(upkeepKeys.inOrder, field, own)) === 1) return true
    const [id, since] = ((await this.#redis.hget(upkeepKeys.inOrder, field)) ?? own).split(' ')
    if (id === delivery.id) return true
    if (nowMs - Number(since) < this.#keptMs) return false
    await this.#redis.hset(upkeepKeys.inOrder, field, own)
    return true
  }

  /** Passes the turn on, if it is that of this delivery. */
  async pass(delivery: Ordered): Promise<void> {
    const field = fieldOf(delivery)
    if (field === undefined) return
    const holder = await this.#redis.hget(upkeepKeys.inOrder, field)
    if (holder?.startsWith(`${delivery.id} `)) await this.#redis.hdel(upkeepKeys.inOrder, field)
  }
}

function fieldOf({ receiverId, events }: Ordered): string | undefined {
  const [{ data }] = events
  return events.length > 1 || !('finding' in data) ? undefined : `${receiverId}/${data.finding.id}`
}
