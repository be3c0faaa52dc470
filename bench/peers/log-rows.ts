import { fileURLToPath } from 'node:url'
import { fromBinary } from '@bufbuild/protobuf'
import protobuf from 'protobufjs'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import type {
  KeyValue as BufbuildKeyValue,
  AnyValue as BufbuildValue,
} from '../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { Origin } from './otlp-rows.ts'

/** Log records as rows of JSONEachRow, by libraries that decode into objects. The columns are those of the OpenTelemetry Collector's ClickHouse exporter. */
export interface LogRow {
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

const PROTO = fileURLToPath(new URL('../../schemas/otlp/proto/', import.meta.url))

const root = new protobuf.Root()
root.resolvePath = (_origin, target) => PROTO + target
root.loadSync('opentelemetry/proto/collector/logs/v1/logs_service.proto')
const exportRequest = root.lookupType('opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest')

/** By protobufjs. */
export function decodeLogRows(body: Buffer, origin: Origin): LogRow[] {
  const request = exportRequest.decode(body) as unknown as ExportRequest
  const rows: LogRow[] = []
  for (const { resource, scopeLogs, schemaUrl } of request.resourceLogs) {
    const resourceAttributes = toMap(resource?.attributes ?? [])
    for (const { scope, logRecords } of scopeLogs) {
      for (const record of logRecords) {
        rows.push({
          WorkspaceId: origin.workspaceId,
          SurfaceId: origin.surfaceId,
          ReceivedAt: (origin.receivedAtMs / 1_000).toFixed(3),
          Timestamp: seconds(record.timeUnixNano.toString()),
          TraceId: hex(record.traceId),
          SpanId: hex(record.spanId),
          TraceFlags: record.flags,
          SeverityText: record.severityText,
          SeverityNumber: record.severityNumber,
          ServiceName: resourceAttributes['service.name'] ?? '',
          Body: textOf(record.body),
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

/** The same rows by @bufbuild/protobuf and its generated code. */
export function decodeLogRowsByBufbuild(body: Buffer, origin: Origin): LogRow[] {
  const rows: LogRow[] = []
  for (const { resource, scopeLogs, schemaUrl } of fromBinary(ExportLogsServiceRequestSchema, body).resourceLogs) {
    const resourceAttributes = toMapOfBufbuild(resource?.attributes ?? [])
    for (const { scope, logRecords } of scopeLogs) {
      for (const record of logRecords) {
        rows.push({
          WorkspaceId: origin.workspaceId,
          SurfaceId: origin.surfaceId,
          ReceivedAt: (origin.receivedAtMs / 1_000).toFixed(3),
          Timestamp: seconds(String(record.timeUnixNano)),
          TraceId: hex(record.traceId),
          SpanId: hex(record.spanId),
          TraceFlags: record.flags,
          SeverityText: record.severityText,
          SeverityNumber: record.severityNumber,
          ServiceName: resourceAttributes['service.name'] ?? '',
          Body: textOfBufbuild(record.body),
          ResourceSchemaUrl: schemaUrl,
          ResourceAttributes: resourceAttributes,
          ScopeName: scope?.name ?? '',
          ScopeVersion: scope?.version ?? '',
          LogAttributes: toMapOfBufbuild(record.attributes),
          EventName: record.eventName,
        })
      }
    }
  }
  return rows
}

/** DateTime64 takes seconds with nine decimals. */
function seconds(unixNano: string): string {
  const digits = unixNano.padStart(10, '0')
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

function textOf(value: AnyValue | null): string {
  switch (value?.value) {
    case 'stringValue':
      return value.stringValue
    case 'intValue':
      return value.intValue.toString()
    case 'boolValue':
      return String(value.boolValue)
    case 'doubleValue':
      return String(value.doubleValue)
    case undefined:
      return ''
    default:
      return JSON.stringify(value)
  }
}

function toMapOfBufbuild(attributes: readonly BufbuildKeyValue[]): Record<string, string> {
  const map: Record<string, string> = {}
  for (const { key, value } of attributes) map[key] = textOfBufbuild(value)
  return map
}

function textOfBufbuild(value: BufbuildValue | undefined): string {
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

/** What protobufjs makes of the messages, as far as rows need it. */
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
  readonly timeUnixNano: { toString(): string }
  readonly severityNumber: number
  readonly severityText: string
  readonly body: AnyValue | null
  readonly attributes: readonly KeyValue[]
  readonly flags: number
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly eventName: string
}

interface KeyValue {
  readonly key: string
  readonly value: AnyValue | null
}

interface AnyValue {
  /** The name of the field that is set. */
  readonly value: string | undefined
  readonly stringValue: string
  readonly intValue: { toString(): string }
  readonly boolValue: boolean
  readonly doubleValue: number
}
