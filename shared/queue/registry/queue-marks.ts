import { type QueueMark, queueMarkSchema } from '../../../schemas/records/installation.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import type { Queues, RedisQueue } from '../queues.ts'

/** How long a loss holds watermarks back that no operator accepts. */
const HELD_FOR_MS = DAY_MS

/**
 * Returns the queue whose keys have the mark of all equal queues of a number. These are in one slot of a Redis Cluster, so that a
 * server that loses its data loses the marks of its queues.
 */
function markedQueue(queues: Queues, number: number): RedisQueue {
  return queues.at('traces', number)
}

/** Reads the marks of these numbers. The number of a queue that was never marked, or has lost its data, is absent. */
export async function readQueueMarks(
  queues: Queues,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, QueueMark>> {
  const read = await Promise.all(numbers.map(async number => [number, await readQueueMark(queues, number)] as const))
  return new Map(read.flatMap(([number, mark]) => (mark === undefined ? [] : [[number, mark]])))
}

/** Reads the mark of a number. */
export async function readQueueMark(queues: Queues, number: number): Promise<QueueMark | undefined> {
  const { redis, keys } = markedQueue(queues, number)
  const text = await redis.get(keys.mark)
  return text === null ? undefined : queueMarkSchema.parse(JSON.parse(text))
}

/** Stores the mark of a number, or keeps the one that is there unless `replace` is set. Returns the mark that is there. */
export async function writeQueueMark(
  queues: Queues,
  number: number,
  mark: QueueMark,
  { replace = false }: { readonly replace?: boolean } = {},
): Promise<QueueMark | undefined> {
  const { redis, keys } = markedQueue(queues, number)
  const text = JSON.stringify(mark)
  if (replace) await redis.set(keys.mark, text)
  else await redis.set(keys.mark, text, 'NX')
  return readQueueMark(queues, number)
}

/**
 * Returns the times by kind, in Unix ms, that watermarks must not pass because of a loss that no operator has accepted. A loss
 * holds them back for a day at most.
 */
export function heldBackBy(marks: Iterable<QueueMark>, nowMs: number): Readonly<Record<string, number>> {
  const held: Record<string, number> = {}
  for (const { loss } of marks) {
    if (loss === undefined || loss.acceptedAtMs !== null || nowMs - loss.foundAtMs >= HELD_FOR_MS) continue
    for (const [kind, atMs] of Object.entries(loss.settledBeforeMs))
      held[kind] = Math.min(held[kind] ?? Number.POSITIVE_INFINITY, atMs)
  }
  return held
}
