import { type FieldSpec, linkMessages, type MessageType } from './message-type.ts'

/** OTLP's messages with their fields by JSON name. A test compares them with the generated code. */
export const MESSAGE_SPECS: Readonly<Record<string, Readonly<Record<string, FieldSpec>>>> = {
  ExportTraceServiceRequest: { resourceSpans: [1, 'ResourceSpans', 'repeated'] },
  ExportLogsServiceRequest: { resourceLogs: [1, 'ResourceLogs', 'repeated'] },
  ExportMetricsServiceRequest: { resourceMetrics: [1, 'ResourceMetrics', 'repeated'] },

  AnyValue: {
    stringValue: [1, 'string'],
    boolValue: [2, 'bool'],
    intValue: [3, 'int64'],
    doubleValue: [4, 'double'],
    arrayValue: [5, 'ArrayValue'],
    kvlistValue: [6, 'KeyValueList'],
    bytesValue: [7, 'bytes'],
  },
  ArrayValue: { values: [1, 'AnyValue', 'repeated'] },
  KeyValueList: { values: [1, 'KeyValue', 'repeated'] },
  KeyValue: { key: [1, 'string'], value: [2, 'AnyValue'] },
  InstrumentationScope: {
    name: [1, 'string'],
    version: [2, 'string'],
    attributes: [3, 'KeyValue', 'repeated'],
    droppedAttributesCount: [4, 'uint32'],
  },
  EntityRef: {
    schemaUrl: [1, 'string'],
    type: [2, 'string'],
    idKeys: [3, 'string', 'repeated'],
    descriptionKeys: [4, 'string', 'repeated'],
  },
  Resource: {
    attributes: [1, 'KeyValue', 'repeated'],
    droppedAttributesCount: [2, 'uint32'],
    entityRefs: [3, 'EntityRef', 'repeated'],
  },

  ResourceSpans: {
    resource: [1, 'Resource'],
    scopeSpans: [2, 'ScopeSpans', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  ScopeSpans: {
    scope: [1, 'InstrumentationScope'],
    spans: [2, 'Span', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  Span: {
    traceId: [1, 'id'],
    spanId: [2, 'id'],
    traceState: [3, 'string'],
    parentSpanId: [4, 'id'],
    name: [5, 'string'],
    kind: [6, 'SpanKind'],
    startTimeUnixNano: [7, 'time'],
    endTimeUnixNano: [8, 'time'],
    attributes: [9, 'KeyValue', 'repeated'],
    droppedAttributesCount: [10, 'uint32'],
    events: [11, 'Event', 'repeated'],
    droppedEventsCount: [12, 'uint32'],
    links: [13, 'Link', 'repeated'],
    droppedLinksCount: [14, 'uint32'],
    status: [15, 'Status'],
    flags: [16, 'fixed32'],
  },
  Event: {
    timeUnixNano: [1, 'time'],
    name: [2, 'string'],
    attributes: [3, 'KeyValue', 'repeated'],
    droppedAttributesCount: [4, 'uint32'],
  },
  Link: {
    traceId: [1, 'id'],
    spanId: [2, 'id'],
    traceState: [3, 'string'],
    attributes: [4, 'KeyValue', 'repeated'],
    droppedAttributesCount: [5, 'uint32'],
    flags: [6, 'fixed32'],
  },
  Status: { message: [2, 'string'], code: [3, 'StatusCode'] },

  ResourceLogs: {
    resource: [1, 'Resource'],
    scopeLogs: [2, 'ScopeLogs', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  ScopeLogs: {
    scope: [1, 'InstrumentationScope'],
    logRecords: [2, 'LogRecord', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  LogRecord: {
    timeUnixNano: [1, 'time'],
    severityNumber: [2, 'SeverityNumber'],
    severityText: [3, 'string'],
    body: [5, 'AnyValue'],
    attributes: [6, 'KeyValue', 'repeated'],
    droppedAttributesCount: [7, 'uint32'],
    flags: [8, 'fixed32'],
    traceId: [9, 'id'],
    spanId: [10, 'id'],
    observedTimeUnixNano: [11, 'time'],
    eventName: [12, 'string'],
  },

  ResourceMetrics: {
    resource: [1, 'Resource'],
    scopeMetrics: [2, 'ScopeMetrics', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  ScopeMetrics: {
    scope: [1, 'InstrumentationScope'],
    metrics: [2, 'Metric', 'repeated'],
    schemaUrl: [3, 'string'],
  },
  Metric: {
    name: [1, 'string'],
    description: [2, 'string'],
    unit: [3, 'string'],
    gauge: [5, 'Gauge'],
    sum: [7, 'Sum'],
    histogram: [9, 'Histogram'],
    exponentialHistogram: [10, 'ExponentialHistogram'],
    summary: [11, 'Summary'],
    metadata: [12, 'KeyValue', 'repeated'],
  },
  Gauge: { dataPoints: [1, 'NumberDataPoint', 'repeated'] },
  Sum: {
    dataPoints: [1, 'NumberDataPoint', 'repeated'],
    aggregationTemporality: [2, 'AggregationTemporality'],
    isMonotonic: [3, 'bool'],
  },
  Histogram: {
    dataPoints: [1, 'HistogramDataPoint', 'repeated'],
    aggregationTemporality: [2, 'AggregationTemporality'],
  },
  ExponentialHistogram: {
    dataPoints: [1, 'ExponentialHistogramDataPoint', 'repeated'],
    aggregationTemporality: [2, 'AggregationTemporality'],
  },
  Summary: { dataPoints: [1, 'SummaryDataPoint', 'repeated'] },
  NumberDataPoint: {
    startTimeUnixNano: [2, 'time'],
    timeUnixNano: [3, 'time'],
    asDouble: [4, 'double'],
    exemplars: [5, 'Exemplar', 'repeated'],
    asInt: [6, 'sfixed64'],
    attributes: [7, 'KeyValue', 'repeated'],
    flags: [8, 'uint32'],
  },
  HistogramDataPoint: {
    startTimeUnixNano: [2, 'time'],
    timeUnixNano: [3, 'time'],
    count: [4, 'fixed64'],
    sum: [5, 'double'],
    bucketCounts: [6, 'fixed64', 'repeated'],
    explicitBounds: [7, 'double', 'repeated'],
    exemplars: [8, 'Exemplar', 'repeated'],
    attributes: [9, 'KeyValue', 'repeated'],
    flags: [10, 'uint32'],
    min: [11, 'double'],
    max: [12, 'double'],
  },
  ExponentialHistogramDataPoint: {
    attributes: [1, 'KeyValue', 'repeated'],
    startTimeUnixNano: [2, 'time'],
    timeUnixNano: [3, 'time'],
    count: [4, 'fixed64'],
    sum: [5, 'double'],
    scale: [6, 'sint32'],
    zeroCount: [7, 'fixed64'],
    positive: [8, 'Buckets'],
    negative: [9, 'Buckets'],
    flags: [10, 'uint32'],
    exemplars: [11, 'Exemplar', 'repeated'],
    min: [12, 'double'],
    max: [13, 'double'],
    zeroThreshold: [14, 'double'],
  },
  Buckets: { offset: [1, 'sint32'], bucketCounts: [2, 'uint64', 'repeated'] },
  SummaryDataPoint: {
    startTimeUnixNano: [2, 'time'],
    timeUnixNano: [3, 'time'],
    count: [4, 'fixed64'],
    sum: [5, 'double'],
    quantileValues: [6, 'ValueAtQuantile', 'repeated'],
    attributes: [7, 'KeyValue', 'repeated'],
    flags: [8, 'uint32'],
  },
  ValueAtQuantile: { quantile: [1, 'double'], value: [2, 'double'] },
  Exemplar: {
    timeUnixNano: [2, 'time'],
    asDouble: [3, 'double'],
    spanId: [4, 'id'],
    traceId: [5, 'id'],
    asInt: [6, 'sfixed64'],
    filteredAttributes: [7, 'KeyValue', 'repeated'],
  },
}

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
