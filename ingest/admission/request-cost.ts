import { CHUNK_DECOMPRESSED_BYTES, EXPORT_DECOMPRESSED_BYTES, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { estimatedWork } from '../../shared/queue/request-work.ts'

/**
 * The least cost of a request: what a worker decodes in 55 µs (`WORK_PER_MS`), more than it needs for most requests of one span. It
 * bounds how many small requests a queue has, each of which occupies Redis, an edge and a worker: half a million by default.
 */
export const MIN_REQUEST_COST = 8 * 1024

/**
 * Part of the queue that the work of one request may take, 1.8 s of a core by default. Decoding one is bounded to about
 * that, but a false size times the price of its surface may be any number. A surface with nothing in the queue may send a
 * request of any cost, so that such a request would fill the queue and have all other surfaces refused.
 */
const REQUEST_PART = 1 / 16

/** A frame stores its cost in four bytes. */
const MAX_FRAME_COST = 0xffff_ffff

/** What an edge knows about the requests of a surface in one queue. */
interface CostHistory {
  /** Measured work divided by estimated work, as workers state it. */
  readonly price: number
  /** Decoded size over encoded size of recent compressed bodies; 0 if unknown. */
  readonly ratio: number
}

/**
 * Returns the cost of a request, a whole number: its estimated work in decoded bytes, and at least its size and `MIN_REQUEST_COST`.
 * `maxCost` is that of its queue. `decoded` is undefined if the body does not state its decoded size.
 */
export function requestCost(
  maxCost: number,
  { contentType, body }: Pick<PayloadFrame, 'contentType' | 'body'>,
  decoded: number | undefined,
  { price, ratio }: CostHistory,
): number {
  const bytes = body.length
  const work = Math.min(maxCost * REQUEST_PART, estimatedWork(contentType, bytes, decoded, ratio) * price)
  return Math.min(MAX_FRAME_COST, Math.ceil(Math.max(MIN_REQUEST_COST, bytes, work)))
}

/** Workers stop decoding a request at these sizes. Other queues take bodies without a content encoding only. */
const DECODED_LIMITS: Readonly<Record<AdmittedQueue, number>> = {
  traces: EXPORT_DECOMPRESSED_BYTES,
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
