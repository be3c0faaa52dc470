import { type KeyValue, type Long, loadType, type RowContext, toHex, toMap, toSeconds } from './protobufjs.ts'

/** A span as a row of JSONEachRow, with the columns of the OpenTelemetry Collector's ClickHouse exporter. */
export interface TraceRow {
  readonly WorkspaceId: string
  readonly SurfaceId: string
  readonly ReceivedAt: string
  readonly Timestamp: string
  readonly TraceId: string
  readonly SpanId: string
  readonly ParentSpanId: string
  readonly TraceState: string
  readonly SpanName: string
  readonly SpanKind: number
  readonly ServiceName: string
  readonly ResourceAttributes: Record<string, string>
  readonly ScopeName: string
  readonly ScopeVersion: string
  readonly SpanAttributes: Record<string, string>
  readonly Duration: string
  readonly StatusCode: number
  readonly StatusMessage: string
  readonly 'Events.Timestamp': string[]
  readonly 'Events.Name': string[]
  readonly 'Events.Attributes': Record<string, string>[]
  readonly 'Links.TraceId': string[]
  readonly 'Links.SpanId': string[]
  readonly 'Links.Attributes': Record<string, string>[]
}

/**
 * Table of the peers. It has the order and partitions of the product's table, so that contenders differ only in how
 * rows arrive.
 */
export const TRACES_TABLE = `
CREATE TABLE otel_traces
(
  WorkspaceId LowCardinality(String),
  SurfaceId LowCardinality(String),
  ReceivedAt DateTime64(3, 'UTC'),
  Timestamp DateTime64(9, 'UTC'),
  TraceId String,
  SpanId String,
  ParentSpanId String,
  TraceState String,
  SpanName LowCardinality(String),
  SpanKind UInt8,
  ServiceName LowCardinality(String),
  ResourceAttributes Map(LowCardinality(String), String),
  ScopeName LowCardinality(String),
  ScopeVersion LowCardinality(String),
  SpanAttributes Map(LowCardinality(String), String),
  Duration UInt64,
  StatusCode UInt8,
  StatusMessage String,
  Events Nested (Timestamp DateTime64(9, 'UTC'), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)),
  Links Nested (TraceId String, SpanId String, Attributes Map(LowCardinality(String), String))
)
ENGINE = MergeTree PARTITION BY toDate(ReceivedAt) ORDER BY (WorkspaceId, TraceId, Timestamp)`

const exportRequest = loadType(
  'opentelemetry/proto/collector/trace/v1/trace_service.proto',
  'opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest',
)

/** Decodes an OTLP request into objects, and makes a row object of each span. */
export function decodeTraceRows(body: Buffer, context: RowContext): TraceRow[] {
  const request = exportRequest.decode(body) as unknown as ExportRequest
  const rows: TraceRow[] = []
  for (const { resource, scopeSpans } of request.resourceSpans) {
    const resourceAttributes = toMap(resource?.attributes ?? [])
    for (const { scope, spans } of scopeSpans) {
      for (const span of spans) {
        rows.push({
          WorkspaceId: context.workspaceId,
          SurfaceId: context.surfaceId,
          ReceivedAt: (context.receivedAtMs / 1_000).toFixed(3),
          Timestamp: toSeconds(span.startTimeUnixNano),
          TraceId: toHex(span.traceId),
          SpanId: toHex(span.spanId),
          ParentSpanId: toHex(span.parentSpanId),
          TraceState: span.traceState,
          SpanName: span.name,
          SpanKind: span.kind,
          ServiceName: resourceAttributes['service.name'] ?? '',
          ResourceAttributes: resourceAttributes,
          ScopeName: scope?.name ?? '',
          ScopeVersion: scope?.version ?? '',
          SpanAttributes: toMap(span.attributes),
          Duration: span.endTimeUnixNano.subtract(span.startTimeUnixNano).toString(),
          StatusCode: span.status?.code ?? 0,
          StatusMessage: span.status?.message ?? '',
          'Events.Timestamp': span.events.map(event => toSeconds(event.timeUnixNano)),
          'Events.Name': span.events.map(event => event.name),
          'Events.Attributes': span.events.map(event => toMap(event.attributes)),
          'Links.TraceId': span.links.map(link => toHex(link.traceId)),
          'Links.SpanId': span.links.map(link => toHex(link.spanId)),
          'Links.Attributes': span.links.map(link => toMap(link.attributes)),
        })
      }
    }
  }
  return rows
}

/** The decoded request, limited to the fields of rows. */
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] } | null
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string; readonly version: string } | null
      readonly spans: readonly Span[]
    }[]
  }[]
}

interface Span {
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly parentSpanId: Buffer
  readonly traceState: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: Long
  readonly endTimeUnixNano: Long
  readonly attributes: readonly KeyValue[]
  readonly status: { readonly code: number; readonly message: string } | null
  readonly events: readonly { readonly timeUnixNano: Long; readonly name: string; readonly attributes: KeyValue[] }[]
  readonly links: readonly { readonly traceId: Buffer; readonly spanId: Buffer; readonly attributes: KeyValue[] }[]
}
