import type { TraceColumns } from '../api/generated/client.ts'

/** Digits of a span id in hex. */
const ID_DIGITS = 16

/** The spans of a trace as columns: an entry for each span in every array, ordered by start and then by id. */
export interface SpanColumns {
  readonly count: number
  /** The ids one after the other. */
  readonly ids: string
  /** Nanoseconds from the start of the trace. */
  readonly starts: Float64Array
  /** Nanoseconds. Negative for a span that ends before it starts. */
  readonly durations: Float64Array
  /** Index of the parent; -1 for a root, -2 if the parent is not retained. */
  readonly parents: Int32Array
  readonly nameIndexes: Int32Array
  readonly serviceIndexes: Int32Array
  readonly statuses: Uint8Array
  readonly names: readonly string[]
  readonly services: readonly string[]
  /** Colour of each service, by its name alone. */
  readonly serviceHues: readonly number[]
}

/** Number of colours of services. Each service is named too, so that no colour is the only sign. */
const HUES = 12

/** Returns the colour of a service. It depends on nothing but the name (FNV-1a), so that it is the same in every trace. */
export function hueOf(service: string): number {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(service)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  // The low bits of this hash differ little between similar names.
  return (hash >>> 8) % HUES
}

/** Copies the columns of a response into typed arrays, an eighth of the memory of its JSON, which is then free. */
export function columnsOf({ spanCount, spans, names, services }: TraceColumns): SpanColumns {
  const starts = new Float64Array(spanCount)
  let start = 0
  for (let i = 0; i < spanCount; i++) {
    start += spans.startDeltaNanos[i] ?? 0
    starts[i] = start
  }
  return {
    count: spanCount,
    ids: spans.ids,
    starts,
    durations: Float64Array.from(spans.durationNanos),
    parents: Int32Array.from(spans.parents),
    nameIndexes: Int32Array.from(spans.names),
    serviceIndexes: Int32Array.from(spans.services),
    statuses: Uint8Array.from(spans.statuses),
    names,
    services,
    serviceHues: services.map(hueOf),
  }
}

/** Returns the id of a span. */
export function idOf({ ids }: SpanColumns, span: number): string {
  return ids.slice(span * ID_DIGITS, (span + 1) * ID_DIGITS)
}

/** Returns the index of the span with an id, or -1. */
export function indexOfId({ ids }: SpanColumns, id: string): number {
  if (id.length !== ID_DIGITS) return -1
  let at = ids.indexOf(id)
  while (at >= 0 && at % ID_DIGITS !== 0) at = ids.indexOf(id, at + 1)
  return at < 0 ? -1 : at / ID_DIGITS
}

/** Returns the name of a span. A trace whose distinct names are too long for one response has none. */
export function nameOf({ names, nameIndexes }: SpanColumns, span: number): string {
  return names[nameIndexes[span] ?? -1] ?? '(name left out)'
}

/** Returns the service of a span. */
export function serviceOf({ services, serviceIndexes }: SpanColumns, span: number): string {
  return services[serviceIndexes[span] ?? -1] ?? ''
}
