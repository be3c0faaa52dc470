import type { ContentEncoding, ContentType } from './payload-frame.ts'

/** Decoded size over encoded size of a body whose decoded size is unknown, unless its surface has a higher ratio. */
const UNKNOWN_RATIO = 8

/** Work per decoded byte, in units of a byte of protobuf. Measured with traces: JSON takes three times as long. */
const WEIGHTS: Readonly<Record<ContentType, number>> = {
  'application/octet-stream': 1,
  'application/x-protobuf': 1,
  'application/json': 3,
}

/**
 * Returns the estimated work for the workers of a body of this many bytes, in bytes of decoded protobuf. `decoded` is the
 * size that the body states, or undefined. `ratio` is the decoded size over the encoded size of earlier bodies.
 */
export function estimatedWork(contentType: ContentType, bytes: number, decoded: number | undefined, ratio = 0): number {
  return (decoded ?? bytes * Math.max(UNKNOWN_RATIO, ratio)) * WEIGHTS[contentType]
}

/** Work of one core in a millisecond. Measured with traces of 200 spans. */
const WORK_PER_MS = 150_000

/** Returns the work that a request turned out to be, from its decoded size and the time that decoding it took. */
export function measuredWork(contentType: ContentType, decoded: number, decodeMs: number): number {
  return Math.max(decoded * WEIGHTS[contentType], decodeMs * WORK_PER_MS)
}

/**
 * Returns the decoded size that a body states, or undefined if it states none. It is at least the encoded size and at
 * most `limit`. A false statement is possible: workers measure the work and correct the price of the surface.
 */
export function statedDecodedBytes(encoding: ContentEncoding, body: Buffer, limit: number): number | undefined {
  if (encoding === 'identity') return body.length
  const stated = encoding === 'gzip' ? gzipDecodedBytes(body) : encoding === 'zstd' ? zstdDecodedBytes(body) : undefined
  return stated === undefined ? undefined : Math.max(body.length, Math.min(limit, stated))
}

/** Header, empty deflate block and trailer. */
const SMALLEST_GZIP = 20

/** Returns ISIZE (RFC 1952, 2.3.1): the decoded size of the last member, modulo 2^32. */
function gzipDecodedBytes(body: Buffer): number {
  return body.length < SMALLEST_GZIP ? 0 : body.readUInt32LE(body.length - 4)
}

/** The first four bytes of a zstd frame, little-endian (RFC 8878, 3.1.1). */
export const ZSTD_MAGIC = 0xfd2f_b528

/** Returns Frame_Content_Size of the first frame (RFC 8878, 3.1.1.1), or undefined if the frame has none. */
export function zstdDecodedBytes(body: Buffer): number | undefined {
  if (body.length < 6 || body.readUInt32LE(0) !== ZSTD_MAGIC) return undefined
  const descriptor = body.readUInt8(4)
  const isSingleSegment = (descriptor & 0x20) !== 0
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] as number
  const at = 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 1 << sizeFlag
  if (sizeBytes === 0 || at + sizeBytes > body.length) return undefined
  if (sizeBytes === 8) return body.readUInt32LE(at) + body.readUInt32LE(at + 4) * 2 ** 32
  return body.readUIntLE(at, sizeBytes) + (sizeBytes === 2 ? 256 : 0)
}
