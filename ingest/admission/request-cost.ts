import { CHUNK_DECOMPRESSED_BYTES, EXPORT_DECOMPRESSED_BYTES, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { ContentEncoding, ContentType, PayloadFrame } from '../../shared/queue/payload-frame.ts'

/** The limits of one queue, for the requests that are accepted and not yet finished. */
export interface QueueLimits {
  /** The most cost of these requests. */
  readonly maxCost: number
  /** The most requests. */
  readonly maxPayloads: number
  /** The most bytes of their bodies. */
  readonly maxBytes: number
}

/** How the cost of a request follows from its size, so that a bound on the cost bounds requests and bytes as well. */
export interface CostRules {
  readonly maxCost: number
  /** The least cost of a byte as sent. */
  readonly perByte: number
  /** The least cost of a request. */
  readonly perRequest: number
}

/** Returns the cost rules of limits. If the sum of costs is within `maxCost`, the other two limits are kept too. */
export function costRules({ maxCost, maxPayloads, maxBytes }: QueueLimits): CostRules {
  return { maxCost, perByte: maxCost / maxBytes, perRequest: Math.ceil(maxCost / maxPayloads) }
}

/** Decoded size over encoded size of a body whose decoded size is unknown, unless its surface has a higher ratio. */
const UNKNOWN_RATIO = 8

/** Work per decoded byte, in units of a byte of protobuf. Measured with traces: JSON takes three times as long. */
const WEIGHTS: Readonly<Record<ContentType, number>> = {
  'application/octet-stream': 1,
  'application/x-protobuf': 1,
  'application/json': 3,
}

/** A frame stores its cost in four bytes. */
const MAX_FRAME_COST = 0xffff_ffff

/** What an edge knows about the requests of a surface in one queue. */
export interface CostHistory {
  /** Measured work divided by estimated work, as workers state it. */
  readonly price: number
  /** Decoded size over encoded size of recent compressed bodies; 0 if unknown. */
  readonly ratio: number
}

/**
 * Returns the cost of a request, a whole number: its estimated work in decoded bytes, or more if its size or its number
 * weighs more against the limits of the queue. `decoded` is undefined if the body does not state its decoded size.
 */
export function requestCost(
  rules: CostRules,
  { contentType, body }: Pick<PayloadFrame, 'contentType' | 'body'>,
  decoded: number | undefined,
  { price, ratio }: CostHistory,
): number {
  const bytes = body.length
  const work = (decoded ?? bytes * Math.max(UNKNOWN_RATIO, ratio)) * WEIGHTS[contentType] * price
  return Math.min(MAX_FRAME_COST, Math.ceil(Math.max(work, bytes * rules.perByte, rules.perRequest)))
}

/** Workers stop decoding a request at these sizes. Other queues take bodies without a content encoding only. */
const DECODED_LIMITS: Readonly<Record<AdmittedQueue, number>> = {
  spans: EXPORT_DECOMPRESSED_BYTES,
  logs: EXPORT_DECOMPRESSED_BYTES,
  metrics: EXPORT_DECOMPRESSED_BYTES,
  replay: CHUNK_DECOMPRESSED_BYTES,
  sessions: SOURCE_MAP_MAX_BYTES,
  'source-maps': SOURCE_MAP_MAX_BYTES,
  completions: SOURCE_MAP_MAX_BYTES,
  'build-reports': SOURCE_MAP_MAX_BYTES,
}

/** Returns the most bytes that workers decode of one request of a queue. */
export const decodedLimit = (queue: AdmittedQueue): number => DECODED_LIMITS[queue]

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

const ZSTD_MAGIC = 0xfd2f_b528

/** Returns Frame_Content_Size of the first frame (RFC 8878, 3.1.1.1), or undefined if the frame has none. */
function zstdDecodedBytes(body: Buffer): number | undefined {
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
