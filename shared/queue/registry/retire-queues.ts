import type { Queues } from '../queues.ts'
import { isDivided } from './queue-tag.ts'
import { forgetPartition, readRegistry } from './registry.ts'

/**
 * Forgets the partitions that no edge has registered for an hour and that are empty. Returns their numbers. Nothing is accepted
 * in them any more, and what moves stays in its partition. So a partition is empty if it is once no payload is in any of its
 * queues, nor a count of requests that is not copied. It may be registered again at any time.
 */
export async function retireQueues(queues: Queues): Promise<readonly number[]> {
  const { partitions } = await readRegistry(queues.common)
  const retired: number[] = []
  for (const registered of partitions) {
    const { partition, isUsed } = registered
    if (isUsed || partition === queues.first || !(await isEmpty(queues, partition))) continue
    if (await forgetPartition(queues.common, registered)) retired.push(partition)
  }
  return retired
}

/** Looks twice, because letters that are stored move on and back among their two queues. */
async function isEmpty(queues: Queues, partition: number): Promise<boolean> {
  const divided = queues.ofNumbers([partition]).all.filter(({ name }) => isDivided(name))
  for (let look = 0; look < 2; look++) {
    for (const { redis, keys } of divided) if ((await redis.exists(keys.pending, keys.arrivals)) > 0) return false
  }
  return true
}
