import type { Signal } from '../../schemas/queues/names.ts'
import type { Percentiles } from './latency-histogram.ts'

/** What the generator is to send, and for how long. Sent to it as a message, so it is plain data. */
export interface LoadPlan {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent as well, one of them with each request in turn: as many surfaces, say, as there are keys in it. */
  readonly varyHeaders?: readonly Readonly<Record<string, string>>[]
  readonly connections: number
  readonly payload: PayloadPlan
  readonly mode: LoadMode
  /** Load that is not counted: connections open, code gets compiled. */
  readonly warmUpMs: number
  readonly durationMs: number
}

export interface PayloadPlan {
  /** Default: traces. */
  readonly signal?: Signal
  /** Spans, log records or data points, as the signal is. */
  readonly spans: number
  /** Different payloads; a connection sends its share of them in turn, each no more than once at a time. */
  readonly pool: number
  /** Every request gets trace and span ids that were never sent before, and the present time. */
  readonly freshIds: boolean
}

/**
 * closed: every connection sends its next request when the last is answered, and after a 429 when its Retry-After is
 * over. open: requests are due at a fixed rate whatever the server does; latency counts from when one was due.
 */
export type LoadMode = { readonly kind: 'closed' } | { readonly kind: 'open'; readonly requestsPerSecond: number }

export interface LoadResult {
  /** Of the measured window: what came back in it. */
  readonly seconds: number
  readonly ok: number
  readonly latency: Percentiles
  /** Open loop: how late the generator itself was. What is near the latencies is its own doing. */
  readonly lateness: Percentiles
  /** Of the whole run, warm-up and last answers included. */
  readonly statuses: Readonly<Record<string, number>>
  /** Requests that got no answer, by error code. They may have been served or not. */
  readonly faults: Readonly<Record<string, number>>
  /** Bytes of one request's body, on average. */
  readonly bodyBytes: number
  /** CPU of the generator, over the measured window. */
  readonly cpuSeconds: number
}

/** From the generator to its parent. */
export type GeneratorMessage =
  | { readonly kind: 'ready' }
  /** The measured window begins, or has ended: the moment to look at the other processes. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' }
  | { readonly kind: 'done'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly error: string }
