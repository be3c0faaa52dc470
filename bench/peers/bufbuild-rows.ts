import { fromBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { AnyValue, KeyValue } from '../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { Origin, TraceRow } from './otlp-rows.ts'

/** The same rows as `decodeTraceRows` makes, by @bufbuild/protobuf and its generated code. */
export function decodeTraceRowsByBufbuild(body: Buffer, origin: Origin): TraceRow[] {
  const rows: TraceRow[] = []
  for (const { resource, scopeSpans } of fromBinary(ExportTraceServiceRequestSchema, body).resourceSpans) {
    const resourceAttributes = toMap(resource?.attributes ?? [])
    for (const { scope, spans } of scopeSpans) {
      for (const span of spans) {
        rows.push({
          WorkspaceId: origin.workspaceId,
          SurfaceId: origin.surfaceId,
          ReceivedAt: (origin.receivedAtMs / 1_000).toFixed(3),
          Timestamp: seconds(span.startTimeUnixNano),
          TraceId: hex(span.traceId),
          SpanId: hex(span.spanId),
          ParentSpanId: hex(span.parentSpanId),
          TraceState: span.traceState,
          SpanName: span.name,
          SpanKind: span.kind,
          ServiceName: resourceAttributes['service.name'] ?? '',
          ResourceAttributes: resourceAttributes,
          ScopeName: scope?.name ?? '',
          ScopeVersion: scope?.version ?? '',
          SpanAttributes: toMap(span.attributes),
          Duration: String(span.endTimeUnixNano - span.startTimeUnixNano),
          StatusCode: span.status?.code ?? 0,
          StatusMessage: span.status?.message ?? '',
          'Events.Timestamp': span.events.map(event => seconds(event.timeUnixNano)),
          'Events.Name': span.events.map(event => event.name),
          'Events.Attributes': span.events.map(event => toMap(event.attributes)),
          'Links.TraceId': span.links.map(link => hex(link.traceId)),
          'Links.SpanId': span.links.map(link => hex(link.spanId)),
          'Links.Attributes': span.links.map(link => toMap(link.attributes)),
        })
      }
    }
  }
  return rows
}

function seconds(unixNano: bigint): string {
  const digits = String(unixNano).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}

function toMap(attributes: readonly KeyValue[]): Record<string, string> {
  const map: Record<string, string> = {}
  for (const { key, value } of attributes) map[key] = textOf(value)
  return map
}

function textOf(value: AnyValue | undefined): string {
  const member = value?.value
  if (member?.case === undefined) return ''
  switch (member.case) {
    case 'stringValue':
      return member.value
    case 'intValue':
    case 'boolValue':
    case 'doubleValue':
      return String(member.value)
    default:
      return JSON.stringify(member.value)
  }
}
