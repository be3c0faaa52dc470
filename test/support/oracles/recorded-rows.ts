import { type DescMessage, fromBinary, fromJson, type JsonValue, type MessageShape } from '@bufbuild/protobuf'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { PayloadSource } from '../../../workers/otlp/protobuf/refusal.ts'
import type { RecordedExport } from '../clients/recorder.ts'
import { expectedLogTables } from './logs-oracle.ts'
import { expectedPoints } from './metrics-oracle.ts'
import { expectedTables, type Row } from './otlp-oracle.ts'
import { readRows } from './read-block.ts'
import { wholeRow } from './whole-row.ts'

/** Rows by table, each as JSON with sorted columns, and sorted. The times at which they arrived are left out. */
export type ComparableRows = Readonly<Record<(typeof TABLES)[number], readonly string[]>>

/** Computes the rows that these messages must have become. */
export function recordedRows(
  origin: Omit<PayloadSource, 'receivedAtMs'>,
  exports: readonly RecordedExport[],
): ComparableRows {
  const source = { ...origin, receivedAtMs: Date.now() }
  const rows: Record<(typeof TABLES)[number], Row[]> = {
    spans: [],
    exceptions: [],
    failures: [],
    logs: [],
    metric_points: [],
  }
  for (const sent of exports) {
    if (sent.signal === 'traces') {
      const { spans, exceptions, failures } = expectedTables(source, decode(ExportTraceServiceRequestSchema, sent))
      rows.spans.push(...spans)
      rows.exceptions.push(...exceptions)
      rows.failures.push(...failures)
    } else if (sent.signal === 'logs') {
      const { logs, exceptions } = expectedLogTables(source, decode(ExportLogsServiceRequestSchema, sent))
      rows.logs.push(...logs)
      rows.exceptions.push(...exceptions)
    } else {
      rows.metric_points.push(...expectedPoints(source, decode(ExportMetricsServiceRequestSchema, sent)).points)
    }
  }
  return byTable(table => rows[table])
}

/** Reads what is stored of a service. */
export async function storedRows(clickhouse: ClickHouseClient, service: string): Promise<ComparableRows> {
  const rows = new Map<string, Row[]>()
  for (const table of TABLES) {
    const columns = table === 'exceptions' || table === 'failures' ? '* EXCEPT stored_at' : '*'
    // Failed spans are copied to `exceptions`.
    const own = table === 'exceptions' ? "AND source != 'span_status'" : ''
    const { stream } = await clickhouse.exec({
      query: `SELECT ${columns} FROM ${table} WHERE service_name = {service: String} ${own} FORMAT Native`,
      query_params: { service },
    })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    rows.set(table, readRows(Buffer.concat(chunks)).map(wholeRow))
  }
  return byTable(table => rows.get(table) ?? [])
}

const TABLES = ['spans', 'exceptions', 'failures', 'logs', 'metric_points'] as const

function byTable(rows: (table: (typeof TABLES)[number]) => readonly Row[]): ComparableRows {
  const comparable = (table: (typeof TABLES)[number]) => rows(table).map(text).sort()
  return {
    spans: comparable('spans'),
    exceptions: comparable('exceptions'),
    failures: comparable('failures'),
    logs: comparable('logs'),
    metric_points: comparable('metric_points'),
  }
}

function text({ received_at, ...row }: Row): string {
  const sorted = Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify(sorted, (_, value) => {
    if (typeof value === 'bigint') return String(value)
    return typeof value === 'number' && !(Number.isFinite(value) && !Object.is(value, -0)) ? `number ${value}` : value
  })
}

function decode<Desc extends DescMessage>(desc: Desc, { isJson, message }: RecordedExport): MessageShape<Desc> {
  if (!isJson) return fromBinary(desc, message)
  // OTLP/JSON has ids in hex where JSON of protobuf has bytes in base64.
  const json = JSON.parse(message.toString(), (key, value) =>
    /^(trace|span|parentSpan)Id$/.test(key) ? Buffer.from(value, 'hex').toString('base64') : value,
  ) as JsonValue
  return fromJson(desc, json)
}
