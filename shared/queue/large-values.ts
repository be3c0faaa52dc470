import type { Redis } from 'ioredis'
import { MIB } from '../../schemas/units.ts'

/**
 * Size of the pieces in which a large value reaches Redis. Redis runs one command at a time and writes it to disk, so a
 * value of 20 MiB in one piece would delay every other client for about 100 ms.
 */
export const PIECE_BYTES = MIB

/** A body of more bytes is written in pieces, apart from the group commits, so that Redis serves others in between. */
export const LARGE_FRAME_BYTES = 4 * MIB

/** How long the pieces of a value may take to arrive. A value that is not a payload by then is deleted. */
export const ARRIVAL_LIFETIME_S = 120

/**
 * Writes a value under a key that expires, piece by piece, each after Redis has confirmed the one before. Safe to repeat.
 * A script then renames the key and makes it permanent.
 */
export async function writeInPieces(redis: Redis, key: string, value: Buffer): Promise<void> {
  for (let offset = 0; offset < value.length; offset += PIECE_BYTES) {
    const written = redis.setrange(key, offset, value.subarray(offset, offset + PIECE_BYTES))
    await Promise.all([written, redis.expire(key, ARRIVAL_LIFETIME_S)])
  }
}
