import { type AnyValue, type Attributes, context, SeverityNumber, trace } from '@opentelemetry/api'
import { OTLPLogExporter as GrpcLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc'
import { OTLPLogExporter as JsonLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as ProtobufLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchLogRecordProcessor,
  InMemoryLogRecordExporter,
  LoggerProvider,
  type ReadableLogRecord,
  SimpleLogRecordProcessor,
} from '@opentelemetry/sdk-logs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { TYPES } from '../../clickhouse/queries/attributes/attribute-columns.ts'
import { type Door, exporterOptions } from '../support/clients/exporter-options.ts'
import { nanos, textOf, textsOf, typeOf, typesOf } from '../support/oracles/attribute-text.ts'
import type { NativeValue } from '../support/oracles/read-block.ts'
import { wholeRow } from '../support/oracles/whole-row.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

const BODIES: AnyValue[] = [
  'order 17 was placed',
  'Grüße aus Zürich 🫕\n"quoted"\\',
  42,
  0.1,
  true,
  ['a', 1, [false]],
  { order: { id: 17, items: ['x', 'y'] }, total: 12.5 },
  new Uint8Array([0, 1, 254, 255]),
  '',
]

const ATTRIBUTES: Attributes = {
  'session.id': 'session-9',
  'http.route': '/cart',
  count: 9007199254740991,
  ratio: -0.25,
  ok: false,
  tags: ['a', 'b'],
}

type LogExporter = typeof ProtobufLogExporter | typeof JsonLogExporter | typeof GrpcLogExporter
/** How an export is sent. */
type Sent = readonly [Exporter: LogExporter, door: Door, compression: CompressionAlgorithm]

/** Logs every kind of body with the official SDK, inside and outside of a trace, and an exception. */
async function writeLogs(service: string, [Exporter, door, compression]: Sent) {
  const seen = new InMemoryLogRecordExporter()
  const exporter = new Exporter({
    ...exporterOptions(stack, 'logs', door, compression),
  })
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': '2.0', 'host.id': 7 }),
    logRecordLimits: { attributeCountLimit: 6 },
    processors: [new BatchLogRecordProcessor({ exporter }), new SimpleLogRecordProcessor({ exporter: seen })],
  })
  const logger = provider.getLogger('orders', '1.2', { schemaUrl: 'https://opentelemetry.io/schemas/1.30.0' })
  const inTrace = trace.setSpanContext(context.active(), {
    traceId: 'ab'.repeat(16),
    spanId: 'cd'.repeat(8),
    traceFlags: 1,
  })
  for (const [i, body] of BODIES.entries()) {
    logger.emit({
      body,
      severityNumber: SeverityNumber.INFO + i,
      severityText: `LEVEL ${i}`,
      timestamp: new Date(1_795_000_000_000 + i),
      attributes: { ...ATTRIBUTES, ...(i % 2 === 0 ? { seventh: 'one too many' } : {}) },
      ...(i % 3 === 0 ? { context: inTrace } : {}),
      ...(i === 4 ? { eventName: 'order.placed' } : {}),
    })
  }
  logger.emit({
    body: 'it failed',
    severityNumber: SeverityNumber.ERROR,
    context: inTrace,
    attributes: {
      'exception.type': 'RangeError',
      'exception.message': 'amount 17 is out of range',
      'exception.stacktrace': 'RangeError: amount 17 is out of range\n    at pay (pay.js:3:9)',
    },
  })
  await provider.forceFlush()
  const records = [...seen.getFinishedLogRecords()]
  await provider.shutdown()
  return records
}

describe.each([
  ['protobuf', [ProtobufLogExporter, 'http', CompressionAlgorithm.NONE]],
  ['protobuf, gzip', [ProtobufLogExporter, 'drain', CompressionAlgorithm.GZIP]],
  ['JSON', [JsonLogExporter, 'drain', CompressionAlgorithm.NONE]],
  ['JSON, gzip', [JsonLogExporter, 'http', CompressionAlgorithm.GZIP]],
  ['gRPC', [GrpcLogExporter, 'grpc', CompressionAlgorithm.NONE]],
  ['gRPC, gzip', [GrpcLogExporter, 'grpc', CompressionAlgorithm.GZIP]],
] satisfies [string, Sent][])('logs of the official SDK as %s', (name, sent) => {
  const service = `orders (${name})`
  let exported: readonly ReadableLogRecord[]

  beforeAll(async () => {
    exported = await writeLogs(service, sent)
  })

  it('are stored with every field of every record', async () => {
    expect(exported).toHaveLength(BODIES.length + 1)
    const rows = await until('every record is stored', async () => {
      const read = await readLogs(service)
      return read.length >= exported.length ? read : undefined
    })
    expect(rows).toEqual(exported.map(record => expectedRow(service, record)).sort(byKey))
  })

  it('give findings for their exceptions, with their traces', async () => {
    const headers = { authorization: `Bearer ${stack.secrets.sessionToken}` }
    const finding = await until('the exception has made a finding', async () => {
      const response = await fetch(`${stack.apiUrl}/v3/findings`, { headers })
      const { findings } = (await response.json()) as { findings: { id: string; type: string; serviceName: string }[] }
      return findings.find(candidate => candidate.type === 'RangeError' && candidate.serviceName === service)
    })
    const traces = await until('the trace of the finding is stored', async () => {
      const response = await fetch(`${stack.apiUrl}/v3/findings/${finding.id}/traces`, { headers })
      const page = (await response.json()) as { traces: unknown[] }
      return page.traces.length > 0 ? page.traces : undefined
    })
    expect(traces).toMatchObject([{ traceId: 'ab'.repeat(16), occurrenceCount: 1 }])
  })
})

type Row = Record<string, unknown>

async function readLogs(service: string): Promise<Row[]> {
  const result = await clickhouse.query({
    query: `SELECT * EXCEPT (received_at, timestamp, trace_id, span_id),
              lower(hex(trace_id)) AS trace, lower(hex(span_id)) AS span
            FROM logs WHERE service_name = {service: String}`,
    query_params: { service },
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
  })
  return (await result.json<Record<string, NativeValue>>()).map(wholeRow).sort(byKey)
}

function expectedRow(service: string, record: ReadableLogRecord): Row {
  return {
    workspace_id: stack.secrets.workspaceId,
    surface_id: stack.secrets.surfaceId,
    service_name: service,
    service_version: '2.0',
    resource: JSON.stringify({ 'host.id': 7, 'service.name': service, 'service.version': '2.0' }),
    resource_dropped_attributes_count: 0,
    resource_schema_url: '',
    scope_name: 'orders',
    scope_version: '1.2',
    scope_attributes: '{}',
    scope_schema_url: 'https://opentelemetry.io/schemas/1.30.0',
    scope_dropped_attributes_count: 0,
    time_unix_nano: String(nanos(record.hrTime)),
    observed_time_unix_nano: String(nanos(record.hrTimeObserved)),
    severity_number: record.severityNumber ?? 0,
    severity_text: record.severityText ?? '',
    body: textOf(record.body),
    body_type: typeOf(record.body),
    attributes: Object.entries(textsOf(record.attributes)),
    attribute_types: typesOf(record.attributes).map(type => TYPES.indexOf(type)),
    dropped_attributes_count: record.droppedAttributesCount,
    flags: record.spanContext?.traceFlags ?? 0,
    trace: record.spanContext?.traceId ?? '0'.repeat(32),
    span: record.spanContext?.spanId ?? '0'.repeat(16),
    event_name: record.eventName ?? '',
    session_id: record.attributes['session.id'] ?? '',
  }
}

function byKey(a: Row, b: Row): number {
  return `${a.time_unix_nano} ${a.severity_text}`.localeCompare(`${b.time_unix_nano} ${b.severity_text}`)
}
