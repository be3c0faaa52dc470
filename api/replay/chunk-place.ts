import { z } from 'zod'
import type { ChunkPlace } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { CURSOR_FAULT, invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'

const within = (min: bigint, max: bigint) =>
  z
    .string()
    .regex(/^-?\d{1,20}$/)
    .refine(text => BigInt(text) >= min && BigInt(text) <= max)
const int64 = within(-(2n ** 63n), 2n ** 63n - 1n)
const uint64 = within(0n, 2n ** 64n - 1n)
const placeSchema = z.tuple([int64, uint64, int64, z.string().regex(/^chk_[0-9a-f]{32}$/)])

/** A place in the reading order as text that means nothing to clients. */
export function encodeChunkPlace({ firstEventMs, windowRank, segmentNumber, id }: ChunkPlace): string {
  return Buffer.from(JSON.stringify([firstEventMs, windowRank, segmentNumber, id])).toString('base64url')
}

export function decodeChunkPlace(text: string | undefined): Outcome<ChunkPlace | undefined> {
  if (text === undefined) return { ok: true, value: undefined }
  try {
    const place = placeSchema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    const [firstEventMs, windowRank, segmentNumber, id] = place
    return { ok: true, value: { firstEventMs, windowRank, segmentNumber, id } }
  } catch {
    return invalid(CURSOR_FAULT, 'api-analytics')
  }
}
