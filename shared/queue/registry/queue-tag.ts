import type { QueueName } from '../../../schemas/queues/names.ts'
import { hashSlot, tagInSlot } from './hash-slot.ts'

/**
 * Queues that are not divided. Claims and records of uploads belong to a release and have the hash tag of the jobs that they
 * are accepted with, so they must be found again whatever the number of partitions is. Builds send a few requests a minute.
 */
const UNDIVIDED: readonly QueueName[] = ['source-maps', 'completions']

/** Returns whether the queue has more than its partition 0. */
export function isDivided(queue: QueueName): boolean {
  return !UNDIVIDED.includes(queue)
}

/** The most partitions of an installation, whose numbers are below it or equal. */
export const MAX_PARTITIONS = 64

/**
 * The difference of the slots of two partitions that follow each other: the golden ratio of all slots, so that any number of
 * partitions is spread over the masters of a cluster, which have ranges of slots.
 */
const SLOT_STEP = 10_126

/**
 * Returns the slot of a partition in a Redis Cluster, the same for all divided queues: a script that finishes a batch moves
 * what derives from it to other queues, and may only use keys of one slot. The first two partitions have the slots of the
 * undivided queues, whose jobs move payloads there.
 */
export function partitionSlot(partition: number): number {
  if (partition === 2) return hashSlot('completions.0')
  return (hashSlot('source-maps.0') + (partition - 1) * SLOT_STEP) % 16_384
}

/** Returns the partition of a hash tag. */
export function numberOf(tag: string): number {
  return Number(tag.split('.')[1])
}

const tags = new Map<string, string>()

/**
 * Returns the hash tag of a partition. Those of partition 0 (`<queue>.0`) are in different slots for different queues, so it is
 * the first one of servers without slots. The first of a cluster is 1.
 */
export function queueTag(queue: QueueName, partition: number): string {
  const name = `${queue}.${partition}`
  if (partition === 0) return name
  let tag = tags.get(name)
  if (tag === undefined) {
    tag = tagInSlot(`${name}.`, partitionSlot(partition))
    tags.set(name, tag)
  }
  return tag
}
