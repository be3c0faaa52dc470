import type { Signal } from '../../schemas/queues/names.ts'
import type { Percentiles } from './latency-histogram.ts'

/** Describes a load and its duration. Plain data, because it is sent as a message. */
export interface LoadPlan {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly payload: PayloadPlan
  readonly mode: LoadMode
  /** Duration of load that is not counted, while connections open and code is compiled. */
  readonly warmUpMs: number
  readonly durationMs: number
  /** The load ends earlier when this many requests were answered with 200. */
  readonly requestLimit?: number
}

/** Kinds of values of spans. */
export type SpanData = 'uniform' | 'exceptions' | 'realistic'

/** Payloads of a load. */
export interface PayloadPlan {
  /** Default: traces. */
  readonly signal?: Signal
  /** Number of spans, log records or data points in a payload. */
  readonly spans: number
  /** Number of different payloads. A connection sends its share of them in turn. */
  readonly pool: number
  /** Whether every request gets new trace and span ids and the current time. */
  readonly freshIds: boolean
  /**
   * Values of the spans. `uniform`: few values in rotation and no events, as every run since the first one had; `exceptions`:
   * the same, every tenth span with an exception; `realistic`: `realisticTracePayload`. Default: uniform.
   */
  readonly data?: SpanData
  /**
   * Whether bodies are sent as gzip: every second body of a connection, or all. They are compressed before the load, because
   * that costs more than sending, so their ids are not renewed: there are enough of them for `GZIP_SPANS`.
   */
  readonly gzip?: 'half' | 'all'
  /** Whether the bodies begin as gzip does and continue with random bytes, so that no worker can decode them. */
  readonly undecodable?: boolean
}

/**
 * When requests are sent. `closed`: a connection sends its next request when the last one has its response; after a 429 or a
 * 503 it waits for Retry-After, unless it is `impatient`. `open`: requests are due at a fixed rate, whatever the server does, and
 * latency counts from the time at which a request was due.
 */
export type LoadMode =
  | { readonly kind: 'closed'; readonly impatient?: boolean }
  | { readonly kind: 'open'; readonly requestsPerSecond: number }

/** Result of one load. */
export interface LoadResult {
  /** Length of the measured window. `ok` counts the 200s that arrived in it. */
  readonly seconds: number
  readonly ok: number
  readonly latency: Percentiles
  /** Delay of the generator itself in an open loop. Latencies close to it are caused by the generator. */
  readonly lateness: Percentiles
  /** Responses by status over the whole run, including warm-up and last responses. */
  readonly statuses: Readonly<Record<string, number>>
  /** Requests without a response, by error code. The server may or may not have processed them. */
  readonly faults: Readonly<Record<string, number>>
  /** Average size of a request body. */
  readonly bodyBytes: number
  /** CPU time of the generator in the measured window. */
  readonly cpuSeconds: number
}

/** Message from the generator to its parent. */
export type GeneratorMessage =
  | { readonly kind: 'ready' }
  /** Sent at the beginning and end of the measured window, when the parent reads the other processes. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' }
  | { readonly kind: 'done'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly error: string }
