import { MIB } from '../../schemas/units.ts'

/** Largest body, decompressed, of a request that is decoded while other jobs are. Larger ones are decoded one at a time. */
export const LARGE_BODY_BYTES = 4 * MIB

/** Bytes that a request may add to the columns per byte of its body, and the bounds of the product. */
const COLUMN_BYTES_PER_BODY_BYTE = 8
const MIN_REQUEST_COLUMN_BYTES = 16 * MIB
const MAX_REQUEST_COLUMN_BYTES = 96 * MIB

/**
 * Returns how many bytes a request may add to the columns of its tables. Rows are wider than the wire: an empty log record
 * has 2 bytes in a request and 130 in the columns. Requests of SDKs and collectors stay below 5 bytes per byte. The limit
 * depends on the request alone, so that a batch that is formed again has the same rows.
 */
export function requestColumnBytes(bodyBytes: number): number {
  const bytes = bodyBytes * COLUMN_BYTES_PER_BODY_BYTE
  return Math.min(Math.max(bytes, MIN_REQUEST_COLUMN_BYTES), MAX_REQUEST_COLUMN_BYTES)
}

/** Bounds of one job. Requests that amplify may have shared a commit, so a job over a bound is split. */
export interface JobLimits {
  /** Decompressed bytes of all requests. */
  readonly maxDecodedBytes: number
  /** Rows of all requests. */
  readonly maxRows: number
  /** Bytes of columns and of refused requests, before the last request is decoded. */
  readonly maxColumnBytes: number
  /** Bytes of one decompressed body. A job with a larger one is `large`. */
  readonly maxBodyBytes: number
}

/**
 * Bounds of a job that is decoded while other jobs are. A commit of the edge contains 4 MiB of requests as sent, or one
 * larger request. Compressed requests may decode to a thousand times that.
 */
export const JOB_LIMITS: JobLimits = {
  maxDecodedBytes: 128 * MIB,
  maxRows: 1_000_000,
  maxColumnBytes: 16 * MIB,
  maxBodyBytes: LARGE_BODY_BYTES,
}

/**
 * Memory that is reserved before a job is decoded: what it may add, since its last request may begin at the limit. A last
 * request of over 2 MiB may add more, which is accounted for when the job is decoded.
 */
export const JOB_RESERVE_BYTES = JOB_LIMITS.maxColumnBytes + MIN_REQUEST_COLUMN_BYTES
/** Memory that is reserved before a large request is decoded: its columns and its decompressed body. */
export const LARGE_JOB_RESERVE_BYTES = MAX_REQUEST_COLUMN_BYTES + 64 * MIB

/** No bounds, for jobs that were within their bounds when their batch was named. */
export const NO_JOB_LIMITS: JobLimits = {
  maxDecodedBytes: Number.POSITIVE_INFINITY,
  maxRows: Number.POSITIVE_INFINITY,
  maxColumnBytes: Number.POSITIVE_INFINITY,
  maxBodyBytes: Number.POSITIVE_INFINITY,
}
