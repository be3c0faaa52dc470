import { CHUNK_DECOMPRESSED_BYTES, EXPORT_DECOMPRESSED_BYTES, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { estimatedWork } from '../../shared/queue/request-work.ts'

/** The limits of one queue, for the requests that are accepted and not yet finished. */
export interface QueueLimits {
  /** The most cost of these requests. */
  readonly maxCost: number
  /** The most requests. */
  readonly maxPayloads: number
  /** The most bytes that Redis may hold of them. */
  readonly maxBytes: number
}

/** How the cost of a request follows from its size, so that a bound on the cost bounds requests and bytes as well. */
export interface CostRules {
  readonly maxCost: number
  /** The least cost of a byte that Redis holds. */
  readonly perByte: number
  /** The least cost of a request. */
  readonly perRequest: number
  /** The most cost that the estimated work of a request adds. */
  readonly maxWork: number
}

/**
 * Part of the queue that the work of one request may take, 1.8 s of a core by default. Decoding one is bounded to about
 * that, but a false size times the price of its surface may be any number. A surface with nothing in the queue may send a
 * request of any cost, so that such a request would fill the queue and have all other surfaces refused.
 */
const REQUEST_PART = 1 / 16

/**
 * Returns the cost rules of limits. If the sum of costs is within `maxCost`, `maxPayloads` is kept too, and `maxBytes` as far as
 * the bytes that Redis holds are as estimated (`HeldShare`).
 */
export function costRules({ maxCost, maxPayloads, maxBytes }: QueueLimits): CostRules {
  return {
    maxCost,
    perByte: maxCost / maxBytes,
    perRequest: Math.ceil(maxCost / maxPayloads),
    maxWork: maxCost * REQUEST_PART,
  }
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
 * `heldShare` is the share of its bytes that Redis is expected to hold (`HeldShare`).
 */
export function requestCost(
  rules: CostRules,
  { contentType, body }: Pick<PayloadFrame, 'contentType' | 'body'>,
  decoded: number | undefined,
  { price, ratio }: CostHistory,
  heldShare: number,
): number {
  const bytes = body.length
  const work = Math.min(rules.maxWork, estimatedWork(contentType, bytes, decoded, ratio) * price)
  return Math.min(MAX_FRAME_COST, Math.ceil(Math.max(work, bytes * heldShare * rules.perByte, rules.perRequest)))
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
