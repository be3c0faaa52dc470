import { type DescMessage, fromBinary, type Message, type MessageShape } from '@bufbuild/protobuf'
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

/** Returns a field of a record, or the reason of its rejection, or of the refusal of the text. */
function fieldOf(record: Message | undefined, name: string | undefined): unknown {
  return record?.$unknown?.some(({ no }) => no === 19_000) ? 'invalid_json_value' : record?.[name as never]
}

/** Returns the message of an OTLP/JSON text, or the reason of its refusal. */
export const readTraces = (text: string) => read('traces', ExportTraceServiceRequestSchema, text)
const readLogs = (text: string) => read('logs', ExportLogsServiceRequestSchema, text)
const readMetrics = (text: string) => read('metrics', ExportMetricsServiceRequestSchema, text)

/** Returns the field that the first member of a span (`"name":"a"`) sets, or the reason of the refusal. */
export function spanField(members: string): unknown {
  const message = readTraces(`{"resourceSpans":[{"scopeSpans":[{"spans":[{${members}}]}]}]}`)
  if (typeof message === 'string') return message
  const name = /^\s*"(\w+)"/.exec(members)?.[1]
  return fieldOf(message.resourceSpans[0]?.scopeSpans[0]?.spans[0], name)
}

/** Returns the same for a log record. */
export function logField(members: string): unknown {
  const message = readLogs(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{${members}}]}]}]}`)
  if (typeof message === 'string') return message
  const name = /^\s*"(\w+)"/.exec(members)?.[1]
  return fieldOf(message.resourceLogs[0]?.scopeLogs[0]?.logRecords[0], name)
}

/** Returns the set member of an AnyValue with its value, or the reason of the refusal. */
export function anyValue(text: string): AnyValue['value'] | string {
  const body = logField(`"body":${text}`)
  return typeof body === 'string' ? body : (body as AnyValue).value
}

/** Returns only the value. */
export function anyValueOf(text: string): unknown {
  const member = anyValue(text)
  return typeof member === 'string' ? member : member.value
}

/** Returns a field of the data point of a metric, or the reason of the refusal. `value` means its oneof. */
export function pointField(kind: string, name: string, members: string): unknown {
  const metric = `{"${kind}":{"dataPoints":[{${members}}]}}`
  const message = readMetrics(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[${metric}]}]}]}`)
  if (typeof message === 'string') return message
  const data = message.resourceMetrics[0]?.scopeMetrics[0]?.metrics[0]?.data.value
  return fieldOf(data?.dataPoints[0], name)
}
