import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { realisticTracePayload } from './realistic-trace-payload.ts'

const CLIENT = 3
/** The parent is in another process. */
const REMOTE = 0x301

/**
 * Returns realistic payloads in which services call each other: the first span of each trace has a span of a client in the
 * payload before as its parent, whose trace it continues. Those of different numbers, from `first` on, have different ids.
 */
export function linkedPayloads(spans: number, count: number, first = 0): Buffer[] {
  let callers: { readonly traceId: Uint8Array; readonly spanId: Uint8Array }[] = []
  return Array.from({ length: count }, (_, number) => {
    const request = fromBinary(ExportTraceServiceRequestSchema, realisticTracePayload(spans, first + number))
    const all = request.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(scope => scope.spans))
    const traces = new Map<string, Uint8Array>()
    for (const span of all) {
      const key = Buffer.from(span.traceId).toString('hex')
      const caller = span.parentSpanId.length === 0 ? callers.pop() : undefined
      if (caller !== undefined) {
        traces.set(key, caller.traceId)
        span.parentSpanId = caller.spanId
        span.flags = REMOTE
      }
      span.traceId = traces.get(key) ?? span.traceId
    }
    callers = all.filter(({ kind }) => kind === CLIENT)
    return Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
  })
}
