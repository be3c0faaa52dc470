import type { ExportLogsServiceRequest } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import type { KeyValue } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { LogRecord } from '../../../schemas/otlp/generated/opentelemetry/proto/logs/v1/logs_pb.js'
import type { PayloadSource, RejectedRows } from '../../../workers/otlp/protobuf/refusal.ts'
import {
  attributeColumns,
  canonicalJson,
  cut,
  hex,
  identityColumns,
  lastText,
  latin1,
  noteRejection,
  noteSession,
  placeColumns,
  promotedText,
  sessionIdOf,
  textOf,
  typeOf,
} from './otlp-oracle.ts'
import type { NativeValue } from './read-block.ts'

type Row = Record<string, NativeValue>

/** Expected rows by table. */
interface ExpectedLogTables {
  logs: Row[]
  exceptions: Row[]
  rejected: RejectedRows
}

/** Computes the rows of a payload of logs from the decoded message, in the terms of `readBlock`. */
export function expectedLogTables(origin: PayloadSource, request: ExportLogsServiceRequest): ExpectedLogTables {
  const result: ExpectedLogTables = { logs: [], exceptions: [], rejected: {} }
  for (const { resource, scopeLogs, schemaUrl } of request.resourceLogs) {
    const resourceAttributes = resource?.attributes ?? []
    for (const { scope, logRecords, schemaUrl: scopeSchemaUrl } of scopeLogs) {
      const shared = {
        workspace_id: origin.workspaceId,
        surface_id: origin.surfaceId,
        received_at: BigInt(origin.receivedAtMs),
        service_name: latin1(cut(promotedText(resourceAttributes, 'service.name'), 1_024)),
        service_version: latin1(cut(promotedText(resourceAttributes, 'service.version'), 256)),
        resource: latin1(canonicalJson(resourceAttributes)),
        resource_dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
        resource_schema_url: latin1(cut(schemaUrl, 2_048)),
        scope_name: latin1(cut(scope?.name ?? '', 1_024)),
        scope_version: latin1(cut(scope?.version ?? '', 1_024)),
        scope_attributes: latin1(canonicalJson(scope?.attributes ?? [])),
        scope_schema_url: latin1(cut(scopeSchemaUrl, 2_048)),
        scope_dropped_attributes_count: scope?.droppedAttributesCount ?? 0,
      }
      for (const record of logRecords) {
        const rejection = rejectionOf(record)
        if (rejection !== undefined) {
          noteRejection(result.rejected, rejection, result.logs.length)
          continue
        }
        result.logs.push({ ...shared, ...logRow(record, origin, resourceAttributes) })
        noteSession(result.rejected, record.attributes, resourceAttributes)
        result.exceptions.push(...exceptionRows(record, shared, origin, resourceAttributes))
      }
    }
  }
  return result
}

function rejectionOf({ traceId, spanId }: LogRecord) {
  if (![0, 16].includes(traceId.length)) return 'invalid_trace_id'
  if (![0, 8].includes(spanId.length)) return 'invalid_span_id'
  return undefined
}

function logRow(record: LogRecord, origin: PayloadSource, resourceAttributes: KeyValue[]): Row {
  const time = eventTime(record, origin)
  const receivedAt = BigInt(origin.receivedAtMs) * 1_000_000n
  return {
    timestamp: time <= receivedAt + 300_000_000_000n ? time : receivedAt,
    time_unix_nano: record.timeUnixNano,
    observed_time_unix_nano: record.observedTimeUnixNano,
    severity_number: record.severityNumber >= 0 && record.severityNumber <= 255 ? record.severityNumber : 0,
    severity_text: latin1(record.severityText),
    body: latin1(textOf(record.body)),
    body_type: typeOf(record.body),
    ...attributeColumns(record.attributes),
    dropped_attributes_count: record.droppedAttributesCount,
    flags: record.flags,
    trace_id: hex(record.traceId).padStart(32, '0'),
    span_id: hex(record.spanId).padStart(16, '0'),
    event_name: latin1(record.eventName),
    session_id: latin1(sessionIdOf(record.attributes, resourceAttributes)),
  }
}

/** Returns the first of the three times that is set. */
function eventTime(record: LogRecord, origin: PayloadSource): bigint {
  return record.timeUnixNano || record.observedTimeUnixNano || BigInt(origin.receivedAtMs) * 1_000_000n
}

const DESCRIBING = ['exception.type', 'exception.message', 'exception.stacktrace']

function exceptionRows(record: LogRecord, shared: Row, origin: PayloadSource, resourceAttributes: KeyValue[]): Row[] {
  const { attributes } = record
  if (!attributes.some(({ key, value }) => DESCRIBING.includes(key) && textOf(value) !== '')) return []
  const type = cut(lastText(attributes, 'exception.type'), 1024)
  const message = cut(lastText(attributes, 'exception.message'), 8192)
  const stacktrace = cut(lastText(attributes, 'exception.stacktrace'), 32_768)
  const fingerprint = cut(lastText(attributes, 'exception.fingerprint'), 1024)
  return [
    {
      workspace_id: shared.workspace_id as string,
      surface_id: shared.surface_id as string,
      received_at: shared.received_at as bigint,
      ...identityColumns(origin, resourceAttributes, { type, message, stacktrace, fingerprint }),
      trace_id: hex(record.traceId).padStart(32, '0'),
      span_id: hex(record.spanId).padStart(16, '0'),
      parent_span_id: '0'.repeat(16),
      occurred_at_unix_nano: eventTime(record, origin),
      service_name: shared.service_name as string,
      service_version: shared.service_version as string,
      session_id: latin1(sessionIdOf(attributes, resourceAttributes)),
      source: 2,
      fingerprint: latin1(fingerprint),
      type: latin1(type),
      message: latin1(message),
      stacktrace: latin1(stacktrace),
      span_name: '',
      escaped: lastText(attributes, 'exception.escaped') === 'true',
      debug_ids: [], // random values contain no UUIDs
      ...placeColumns(attributes, resourceAttributes),
    },
  ]
}
