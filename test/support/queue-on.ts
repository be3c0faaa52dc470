import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { Queues, type RedisQueue } from '../../shared/queue/queues.ts'
import type { QueueFeed } from '../../shared/queue/registry/queue-feed.ts'

/** Returns the queues of an installation in one Redis. */
export function onOneServer(redis: Redis): Queues {
  return new Queues('redis://localhost', () => redis)
}

/** Returns the queue of a name in a Redis. */
export function queueOn(redis: Redis, name: QueueName = 'traces'): RedisQueue {
  return onOneServer(redis).firstOf(name)
}

/** Returns the queues of a Redis, to which pools connect by its address. */
export function queuesAt(url: string, redis: Redis): QueueFeed {
  return { ...new Queues(url, () => redis).ofNumbers([0]), onChange: () => () => {} }
}
