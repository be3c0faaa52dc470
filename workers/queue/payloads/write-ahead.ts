import { randomUUID } from 'node:crypto'
import { ARRIVAL_LIFETIME_S } from '../../../shared/queue/large-values.ts'
import { packPayload } from '../../../shared/queue/packed-payload.ts'
import { queueScript } from '../../../shared/queue/queue-script.ts'
import type { RedisQueue } from '../../../shared/queue/queues.ts'

const WRITE_PIECE = queueScript('write-piece')
const NOTHING = Buffer.alloc(0)

/**
 * Writes the payload of a move, packed, under a key that expires, and returns the move without it: the script that finishes the
 * batch only renames the key. The key has a name of its own each time: two workers that finish one batch, of versions that cut
 * it into other pieces, must not mix them.
 */
export async function writeAhead<M extends { readonly jobId: string; readonly payload: Buffer }>(
  { redis, keys }: RedisQueue,
  move: M,
): Promise<M & { readonly bytes: number; readonly arrivingKey: string }> {
  const arrivingKey = keys.arriving(`${move.jobId}-${randomUUID()}`)
  const packed = await packPayload(move.payload)
  await WRITE_PIECE.run(redis, [arrivingKey], [packed, ARRIVAL_LIFETIME_S])
  return { ...move, payload: NOTHING, bytes: move.payload.length, arrivingKey }
}
