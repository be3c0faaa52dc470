import type { RowContext } from './protobufjs.ts'
import type { TraceRow } from './trace-rows.ts'

/** Decodes OTLP/JSON with JSON.parse into the same rows as protobufjs. */
export function decodeTraceRowsOfJson(body: Buffer, context: RowContext): TraceRow[] {
  const request = JSON.parse(body.toString()) as ExportRequest
  const rows: TraceRow[] = []
  for (const { resource, scopeSpans } of request.resourceSpans ?? []) {
    const resourceAttributes = toMap(resource?.attributes)
    for (const { scope, spans } of scopeSpans ?? []) {
      for (const span of spans ?? []) {
        const { events = [], links = [] } = span
        rows.push({
          WorkspaceId: context.workspaceId,
          SurfaceId: context.surfaceId,
          ReceivedAt: (context.receivedAtMs / 1_000).toFixed(3),
          Timestamp: seconds(span.startTimeUnixNano),
          TraceId: span.traceId ?? '',
          SpanId: span.spanId ?? '',
          ParentSpanId: span.parentSpanId ?? '',
          TraceState: span.traceState ?? '',
          SpanName: span.name ?? '',
          SpanKind: span.kind ?? 0,
          ServiceName: resourceAttributes['service.name'] ?? '',
          ResourceAttributes: resourceAttributes,
          ScopeName: scope?.name ?? '',
          ScopeVersion: scope?.version ?? '',
          SpanAttributes: toMap(span.attributes),
          Duration: String(BigInt(span.endTimeUnixNano ?? 0) - BigInt(span.startTimeUnixNano ?? 0)),
          StatusCode: span.status?.code ?? 0,
          StatusMessage: span.status?.message ?? '',
          'Events.Timestamp': events.map(event => seconds(event.timeUnixNano)),
          'Events.Name': events.map(event => event.name ?? ''),
          'Events.Attributes': events.map(event => toMap(event.attributes)),
          'Links.TraceId': links.map(link => link.traceId ?? ''),
          'Links.SpanId': links.map(link => link.spanId ?? ''),
          'Links.Attributes': links.map(link => toMap(link.attributes)),
        })
      }
    }
  }
  return rows
}

/** Formats a time for DateTime64, as seconds with nine decimals. */
function seconds(unixNano: string | number = 0): string {
  const digits = String(unixNano).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

function toMap(attributes: readonly KeyValue[] = []): Record<string, string> {
  const map: Record<string, string> = {}
  for (const { key, value } of attributes) map[key] = textOf(value)
  return map
}

function textOf(value: AnyValue = {}): string {
  if (value.stringValue !== undefined) return value.stringValue
  const scalar = value.intValue ?? value.boolValue ?? value.doubleValue
  if (scalar !== undefined) return String(scalar)
  return value.arrayValue || value.kvlistValue ? JSON.stringify(value) : ''
}

interface ExportRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] }
    readonly scopeSpans?: readonly {
      readonly scope?: { readonly name?: string; readonly version?: string }
      readonly spans?: readonly Span[]
    }[]
  }[]
}

interface Span {
  readonly traceId?: string
  readonly spanId?: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name?: string
  readonly kind?: number
  readonly startTimeUnixNano?: string
  readonly endTimeUnixNano?: string
  readonly attributes?: readonly KeyValue[]
  readonly status?: { readonly code?: number; readonly message?: string }
  readonly events?: readonly { timeUnixNano?: string; name?: string; attributes?: readonly KeyValue[] }[]
  readonly links?: readonly { traceId?: string; spanId?: string; attributes?: readonly KeyValue[] }[]
}

interface KeyValue {
  readonly key: string
  readonly value?: AnyValue
}

interface AnyValue {
  readonly stringValue?: string
  readonly intValue?: string | number
  readonly boolValue?: boolean
  readonly doubleValue?: number | string
  readonly arrayValue?: object
  readonly kvlistValue?: object
}
