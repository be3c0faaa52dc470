import { MESSAGE_SPECS } from '../protobuf/message-specs.ts'
import { linkMessages, type MessageType } from './message-type.ts'

/** Names of the values of each enum, indexed by number. */
export const ENUM_SPECS: Readonly<Record<string, readonly string[]>> = {
  SpanKind: ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(name => `SPAN_KIND_${name}`),
  StatusCode: ['UNSET', 'OK', 'ERROR'].map(name => `STATUS_CODE_${name}`),
  AggregationTemporality: ['UNSPECIFIED', 'DELTA', 'CUMULATIVE'].map(name => `AGGREGATION_TEMPORALITY_${name}`),
  SeverityNumber: [
    'SEVERITY_NUMBER_UNSPECIFIED',
    ...['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'].flatMap(name =>
      ['', '2', '3', '4'].map(step => `SEVERITY_NUMBER_${name}${step}`),
    ),
  ],
}

/**
 * Bytes reserved for the length of a message; the default is 1. Too many enlarge the output (the length is padded), too
 * few move the message. Small messages must not be padded, because the decoder's fast path for attributes requires
 * lengths of one byte.
 */
const LENGTH_BYTES: Readonly<Record<string, 2 | 4>> = {
  ResourceSpans: 4,
  ScopeSpans: 4,
  Span: 2,
  Event: 2,
  ResourceLogs: 4,
  ScopeLogs: 4,
  LogRecord: 2,
  ResourceMetrics: 4,
  ScopeMetrics: 4,
  Metric: 4,
  Gauge: 4,
  Sum: 4,
  Histogram: 4,
  ExponentialHistogram: 4,
  Summary: 4,
  HistogramDataPoint: 2,
  ExponentialHistogramDataPoint: 2,
  SummaryDataPoint: 2,
  Resource: 2,
}

/** Message type of the request of each signal. */
export const REQUEST_TYPES: Readonly<Record<'traces' | 'logs' | 'metrics', MessageType>> = (() => {
  const types = linkMessages(MESSAGE_SPECS, ENUM_SPECS, LENGTH_BYTES)
  const type = (name: string) => types.get(name) as MessageType
  return {
    traces: type('ExportTraceServiceRequest'),
    logs: type('ExportLogsServiceRequest'),
    metrics: type('ExportMetricsServiceRequest'),
  }
})()
