import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { AnyValue } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { createJsonTranscoder } from '../../../workers/otlp/json/transcode-json.ts'

const transcoder = createJsonTranscoder()

function read<Desc extends DescMessage>(
  signal: 'traces' | 'logs' | 'metrics',
  desc: Desc,
  text: string,
): MessageShape<Desc> | string {
  const result = transcoder.transcode(signal, Buffer.from(text))
  return result.ok ? fromBinary(desc, new Uint8Array(result.message)) : result.reason
}

/** What an OTLP/JSON text says as a message, or why it is refused. */
export const readTraces = (text: string) => read('traces', ExportTraceServiceRequestSchema, text)
const readLogs = (text: string) => read('logs', ExportLogsServiceRequestSchema, text)
const readMetrics = (text: string) => read('metrics', ExportMetricsServiceRequestSchema, text)

/** The field that the first of a span's members (`"name":"a"`) sets, or why the text is refused. */
export function spanField(members: string): unknown {
  const message = readTraces(`{"resourceSpans":[{"scopeSpans":[{"spans":[{${members}}]}]}]}`)
  if (typeof message === 'string') return message
  const name = /^\s*"(\w+)"/.exec(members)?.[1]
  return message.resourceSpans[0]?.scopeSpans[0]?.spans[0]?.[name as never]
}

/** The same of a log record. */
export function logField(members: string): unknown {
  const message = readLogs(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{${members}}]}]}]}`)
  if (typeof message === 'string') return message
  const name = /^\s*"(\w+)"/.exec(members)?.[1]
  return message.resourceLogs[0]?.scopeLogs[0]?.logRecords[0]?.[name as never]
}

/** The member of an AnyValue that is set, with its value, or why the text is refused. */
export function anyValue(text: string): AnyValue['value'] | string {
  const body = logField(`"body":${text}`)
  return typeof body === 'string' ? body : (body as AnyValue).value
}

/** The value alone. */
export function anyValueOf(text: string): unknown {
  const member = anyValue(text)
  return typeof member === 'string' ? member : member.value
}

/** A field of the data point of a metric of this kind, or why the text is refused. `value` stands for its oneof. */
export function pointField(kind: string, name: string, members: string): unknown {
  const metric = `{"${kind}":{"dataPoints":[{${members}}]}}`
  const message = readMetrics(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[${metric}]}]}]}`)
  if (typeof message === 'string') return message
  const data = message.resourceMetrics[0]?.scopeMetrics[0]?.metrics[0]?.data.value
  return data?.dataPoints[0]?.[name as never]
}
