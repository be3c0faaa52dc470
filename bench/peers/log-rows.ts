import {
  type AnyValue,
  type KeyValue,
  type Long,
  loadType,
  type RowContext,
  toHex,
  toMap,
  toSeconds,
  toText,
} from './protobufjs.ts'

/** A log record as a row of JSONEachRow, with the columns of the OpenTelemetry Collector's ClickHouse exporter. */
interface LogRow {
  readonly WorkspaceId: string
  readonly SurfaceId: string
  readonly ReceivedAt: string
  readonly Timestamp: string
  readonly TraceId: string
  readonly SpanId: string
  readonly TraceFlags: number
  readonly SeverityText: string
  readonly SeverityNumber: number
  readonly ServiceName: string
  readonly Body: string
  readonly ResourceSchemaUrl: string
  readonly ResourceAttributes: Record<string, string>
  readonly ScopeName: string
  readonly ScopeVersion: string
  readonly LogAttributes: Record<string, string>
  readonly EventName: string
}

const exportRequest = loadType(
  'opentelemetry/proto/collector/logs/v1/logs_service.proto',
  'opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest',
)

/** Decodes an OTLP request into objects, and makes a row object of each log record. */
export function decodeLogRows(body: Buffer, context: RowContext): LogRow[] {
  const request = exportRequest.decode(body) as unknown as ExportRequest
  const rows: LogRow[] = []
  for (const { resource, scopeLogs, schemaUrl } of request.resourceLogs) {
    const resourceAttributes = toMap(resource?.attributes ?? [])
    for (const { scope, logRecords } of scopeLogs) {
      for (const record of logRecords) {
        rows.push({
          WorkspaceId: context.workspaceId,
          SurfaceId: context.surfaceId,
          ReceivedAt: (context.receivedAtMs / 1_000).toFixed(3),
          Timestamp: toSeconds(record.timeUnixNano),
          TraceId: toHex(record.traceId),
          SpanId: toHex(record.spanId),
          TraceFlags: record.flags,
          SeverityText: record.severityText,
          SeverityNumber: record.severityNumber,
          ServiceName: resourceAttributes['service.name'] ?? '',
          Body: toText(record.body),
          ResourceSchemaUrl: schemaUrl,
          ResourceAttributes: resourceAttributes,
          ScopeName: scope?.name ?? '',
          ScopeVersion: scope?.version ?? '',
          LogAttributes: toMap(record.attributes),
          EventName: record.eventName,
        })
      }
    }
  }
  return rows
}

/** The decoded request, limited to the fields of rows. */
interface ExportRequest {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] } | null
    readonly scopeLogs: readonly {
      readonly scope: { readonly name: string; readonly version: string } | null
      readonly logRecords: readonly LogRecord[]
    }[]
    readonly schemaUrl: string
  }[]
}

interface LogRecord {
  readonly timeUnixNano: Long
  readonly severityNumber: number
  readonly severityText: string
  readonly body: AnyValue | null
  readonly attributes: readonly KeyValue[]
  readonly flags: number
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly eventName: string
}
